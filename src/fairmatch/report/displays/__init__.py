"""Pictures of a model for a notebook, in the manner of scikit-learn's displays."""

from fairmatch.report.displays.display import Display
from fairmatch.report.displays.gaps import GapDisplay
from fairmatch.report.displays.matching import MatchingDisplay
from fairmatch.report.displays.tradeoff import TradeoffDisplay

__all__ = ["Display", "GapDisplay", "MatchingDisplay", "TradeoffDisplay"]
