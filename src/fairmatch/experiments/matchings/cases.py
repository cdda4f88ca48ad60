"""The models to match: the one nearest to a level of a gap, for each line and split."""

from collections.abc import Iterator
from dataclasses import dataclass

from fairmatch.experiments.lines import PAPER_RIVALS
from fairmatch.experiments.reading.levels import nearest_index
from fairmatch.experiments.reading.questions import GAPS, reported
from fairmatch.experiments.runs.records import Record, RecordStore
from fairmatch.experiments.runs.spec import RunSpec
from fairmatch.experiments.study import Study

FOLDER = "matchings"
# How many people of each group are matched, and how far a mean score gap may exceed its least.
MATCHED_ROWS, SLACK = 1500, 0.005
# A model is at the level if its gap differs from the level by at most this share of it.
TOLERANCE = 0.25
UNCONSTRAINED = ("unfair", "trees-unfair")
LINES = (
    *("unfair", *PAPER_RIVALS, "ftm", "ftm-joint"),
    *("trees-unfair", "trees-reg", "trees-ftm", "trees-ftm-joint", "trees-predicted"),
    *("trees-smoothing", "trees-smoothing-marginal", "trees-alignment", "trees-thresholds"),
)
# Levels of ΔWDP, the gap that a position refers to. The levels of ΔDP are the paper's.
_SCORE_LEVELS = {"adult": 0.042, "german": 0.05, "bank": 0.045, "dutch": 0.1}


@dataclass(frozen=True)
class Level:
    """A value of a gap at which models are compared.

    Attributes
    ----------
    gap : str
        "DP" or "WDP".
    value : float
        The gap that the models have approximately.
    """

    gap: str
    value: float

    def allows(self, gap: float) -> bool:
        """Return whether a model with this gap is at the level."""
        return abs(gap - self.value) <= TOLERANCE * self.value


@dataclass(frozen=True)
class MatchedCase:
    """A model to match people by.

    Attributes
    ----------
    key : str
        Key of the model's line.
    level : Level
        The level that the model is nearest to.
    spec : RunSpec
        The run that trains the model, with one fairness weight.
    """

    key: str
    level: Level
    spec: RunSpec


def levels_of(dataset: str) -> tuple[Level, ...]:
    """Return the levels on a table: that of ΔDP in the paper's consistency table, and one of ΔWDP.

    A table that is not in the paper has no levels.
    """
    part = reported()["consistency"].get(dataset)
    if part is None:
        return ()
    return Level("DP", float(part["at_DP"])), Level("WDP", _SCORE_LEVELS[dataset])


def matched_cases(study: Study, store: RecordStore) -> Iterator[MatchedCase]:
    """Yield the models at a level whose curves are recorded, split by split.

    Unconstrained models need not be at a level. Each is listed once, to stand beside the others.

    Parameters
    ----------
    study : Study
        The study that the records are of.
    store : RecordStore
        Records of whole curves, which show the weight nearest to the level.
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
