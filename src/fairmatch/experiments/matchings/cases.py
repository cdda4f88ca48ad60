"""Which models are looked at: of each line and split, the one nearest to a level of a gap."""

from collections.abc import Iterator
from dataclasses import dataclass

from fairmatch.experiments.lines import PAPER_RIVALS
from fairmatch.experiments.reading.levels import nearest_index
from fairmatch.experiments.reading.questions import GAPS, reported
from fairmatch.experiments.runs.records import Record, RecordStore
from fairmatch.experiments.runs.spec import RunSpec
from fairmatch.experiments.study import Study

FOLDER = "matchings"
# People of each group who are matched, and how far above its least a mean score gap may be.
MATCHED_ROWS, SLACK = 1500, 0.005
# A model counts as one at the level if its gap is within this share of the level.
TOLERANCE = 0.25
UNCONSTRAINED = ("unfair", "trees-unfair")
LINES = (
    *("unfair", *PAPER_RIVALS, "ftm", "ftm-joint"),
    *("trees-unfair", "trees-reg", "trees-ftm", "trees-ftm-joint", "trees-predicted"),
    *("trees-smoothing", "trees-smoothing-marginal", "trees-alignment", "trees-thresholds"),
)
# Levels of ΔWDP, which is the gap that a position refers to; those of ΔDP are the paper's.
_SCORE_LEVELS = {"adult": 0.042, "german": 0.05, "bank": 0.045, "dutch": 0.1}


@dataclass(frozen=True)
class Level:
    """A value of a gap at which models are compared.

    Attributes
    ----------
    gap : str
        "DP" or "WDP".
    value : float
        The gap that the models have, or nearly so.
    """

    gap: str
    value: float

    def allows(self, gap: float) -> bool:
        """Return whether a model with this gap counts as one at the level."""
        return abs(gap - self.value) <= TOLERANCE * self.value


@dataclass(frozen=True)
class MatchedCase:
    """A model to look at.

    Attributes
    ----------
    key : str
        Its line.
    level : Level
        What it comes nearest to.
    spec : RunSpec
        What trains it, with one fairness weight.
    """

    key: str
    level: Level
    spec: RunSpec


def levels_of(dataset: str) -> tuple[Level, ...]:
    """Return the levels on a table: the paper's of ΔDP for consistency, and one of ΔWDP.

    A table that the paper does not have has none.
    """
    part = reported()["consistency"].get(dataset)
    if part is None:
        return ()
    return Level("DP", float(part["at_DP"])), Level("WDP", _SCORE_LEVELS[dataset])


def matched_cases(study: Study, store: RecordStore) -> Iterator[MatchedCase]:
    """List the models whose curves are recorded and come to a level, split by split.

    Unconstrained models come to none. They are listed once, to be seen beside the others.

    Parameters
    ----------
    study : Study
        Whose records are meant.
    store : RecordStore
        Records of whole curves, which say which weight comes nearest to the level.
    """
    for seed in range(study.n_seeds):
        for dataset in study.datasets:
            for number, level in enumerate(levels_of(dataset)):
                for key in LINES:
                    if key not in study.series or (key in UNCONSTRAINED and number > 0):
                        continue
                    record = store.find(study.spec(key, dataset, seed))
                    if record is None:
                        continue
                    found = _nearest(record, level, key in UNCONSTRAINED)
                    if found is not None:
                        yield MatchedCase(key, level, found)


def _nearest(record: Record, level: Level, however_far: bool) -> RunSpec | None:
    spec, gap = record.spec, GAPS[level.gap]
    index = nearest_index(record, gap, level.value)
    if index is None or not (however_far or level.allows(record.curve[gap][index])):
        return None
    settings = {
        **spec.settings,
        "weights": [spec.settings["weights"][index]],
        "level": level.value,
        **({} if level.gap == "DP" else {"level_of": level.gap}),
        "matched_rows": MATCHED_ROWS,
        "slack": SLACK,
    }
    return RunSpec(spec.dataset, spec.method, spec.seed, settings)
