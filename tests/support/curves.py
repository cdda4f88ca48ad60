"""Records with made-up curves, for tests of what is read from them."""

from paper.records import Record, RecordStore
from paper.specs import RunSpec, Study


def record(spec: RunSpec, **curve: list) -> Record:
    n = len(next(iter(curve.values())))
    return Record(spec, {"weight": list(map(float, range(n))), **curve}, 1.0, {"fairmatch": "0"})


def seeds(*curves: dict) -> dict[int, Record]:
    """One record for each curve, of seeds 0, 1, …"""
    return {
        seed: record(RunSpec("adult", "ftm", seed, {}), **curve)
        for seed, curve in enumerate(curves)
    }


def fill(
    study: Study,
    store: RecordStore,
    key: str,
    dataset: str,
    curve: dict,
    *,
    n_seeds: int = 2,
    **settings: object,
) -> None:
    """Record the same curve for several seeds of a line."""
    for seed in range(n_seeds):
        store.write(record(study.spec(key, dataset, seed, **settings), **curve))
