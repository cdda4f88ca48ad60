"""Pictures and pages for people."""

from fairmatch.report.displays import GapDisplay, MatchingDisplay, TradeoffDisplay
from fairmatch.report.page import require_report, write_filing, write_report
from fairmatch.report.wording import sentences

__all__ = [
    "GapDisplay",
    "MatchingDisplay",
    "TradeoffDisplay",
    "require_report",
    "sentences",
    "write_filing",
    "write_report",
]
