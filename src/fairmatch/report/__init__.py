"""Pictures and pages for people."""

from fairmatch.report.page import write_report
from fairmatch.report.wording import sentences

__all__ = ["sentences", "write_report"]
