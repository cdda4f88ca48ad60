"""The methods of the study of groups, as the page names them; `trial` trains them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrialMethod:
    """A method of the study.

    Attributes
    ----------
    title : str
        Name of the method on the page.
    ours : bool
        Whether the method is a learner of this library, and not one that a user has already.
    by_label : bool
        Whether the method can compare people of each label apart, as equalised odds requires.
    knows_test_rows : bool
        Whether the method is tuned on the test rows. Nobody can do that: it shows a ceiling.
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
