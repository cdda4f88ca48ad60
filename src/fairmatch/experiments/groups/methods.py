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
    """

    title: str
    ours: bool = False


METHODS: dict[str, TrialMethod] = {
    "plain": TrialMethod("plain trees"),
    "thresholds": TrialMethod("plain trees, thresholds by group"),
    "alignment": TrialMethod("plain trees, quantile alignment"),
    "ftm-predicted": TrialMethod("FTM, predicted map", ours=True),
    "ftm-marginal": TrialMethod("FTM, marginal map", ours=True),
    "smoothing": TrialMethod("match smoothing, score weight 5", ours=True),
    "exponentiated-gradient": TrialMethod("exponentiated gradient"),
}
