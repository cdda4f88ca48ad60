"""The methods of the study of groups, as a page calls them; how they train is in `trial`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrialMethod:
    """A method of the study.

    Attributes
    ----------
    title : str
        What the page calls it.
    ours : bool
        Whether it is a learner of this library, and not what a user has already.
    by_label : bool
        Whether it can compare people of both labels apart, as equalised odds asks.
    knows_test_rows : bool
        Whether it is tuned on the test rows themselves, which nobody can do: a ceiling.
    """

    title: str
    ours: bool = False
    by_label: bool = True
    knows_test_rows: bool = False

    def suits(self, criterion: str) -> bool:
        """Return whether the method can aim at a criterion."""
        return self.by_label or criterion != "equalized_odds"


METHODS: dict[str, TrialMethod] = {
    "plain": TrialMethod("plain trees"),
    "thresholds": TrialMethod("plain trees, thresholds by group"),
    "alignment": TrialMethod("plain trees, quantile alignment", by_label=False),
    "ftm-predicted": TrialMethod("FTM, predicted map", ours=True),
    "ftm-marginal": TrialMethod("FTM, marginal map", ours=True),
    "ftm-thresholds": TrialMethod("FTM, predicted map, thresholds by group", ours=True),
    "smoothing": TrialMethod("match smoothing, score weight 5", ours=True),
    "exponentiated-gradient": TrialMethod("exponentiated gradient"),
    "ceiling": TrialMethod("thresholds read off the test rows (a ceiling)", knows_test_rows=True),
}
