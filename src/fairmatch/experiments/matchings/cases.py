"""Which models are looked at: of each line and split, the one nearest to the paper's level."""

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
LINES = (
    *("unfair", *PAPER_RIVALS, "ftm", "ftm-joint"),
    *("trees-unfair", "trees-reg", "trees-ftm", "trees-ftm-joint", "trees-predicted"),
    *("trees-smoothing", "trees-smoothing-marginal", "trees-alignment", "trees-thresholds"),
)


@dataclass(frozen=True)
class MatchedCase:
    """A model to look at.

    Attributes
    ----------
    key : str
        Its line.
    spec : RunSpec
        What trains it, with one fairness weight.
    """

    key: str
    spec: RunSpec


def level_of(dataset: str) -> float:
    """Return the level of ΔDP at which the paper compares consistency on a table."""
    return float(reported()["consistency"][dataset]["at_DP"])


def matched_cases(study: Study, store: RecordStore) -> Iterator[MatchedCase]:
    """List the models whose curves are recorded, split by split.

    Parameters
    ----------
    study : Study
        Whose records are meant.
    store : RecordStore
        Records of whole curves, which say which weight comes nearest to the level.
    """
    for seed in range(study.n_seeds):
        for dataset in study.datasets:
            if dataset not in reported()["consistency"]:
                continue
            for key in LINES:
                if key not in study.series:
                    continue
                spec = study.spec(key, dataset, seed)
                record = store.find(spec)
                if record is not None and (found := _nearest(record)) is not None:
                    yield MatchedCase(key, found)


def _nearest(record: Record) -> RunSpec | None:
    spec, level = record.spec, level_of(record.spec.dataset)
    index = nearest_index(record, GAPS["DP"], level)
    if index is None:
        return None
    settings = {
        **spec.settings,
        "weights": [spec.settings["weights"][index]],
        "level": level,
        "matched_rows": MATCHED_ROWS,
        "slack": SLACK,
    }
    return RunSpec(spec.dataset, spec.method, spec.seed, settings)
