"""Accuracy at equal gap: FTM with every way to match, on the paper's random splits.

Each finished run is appended to the records, and a run that is there is not done again:

    python -m benchmarks.quality --datasets adult --seeds 5
    python -m benchmarks.quality --summary
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fairmatch.measures import MEASURES

RECORDS = Path(__file__).parent / "records" / "quality.jsonl"
WEIGHTS = (0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0)
SCHEDULE = ("epochs", "learning_rate", "decay")
# (dataset, gap, level, accuracy the paper reports for the marginal and for the joint map)
LEVELS = (
    ("adult", "demographic_parity_gap", 0.033, 0.806, 0.810),
    ("adult", "demographic_parity_gap", 0.054, 0.826, 0.830),
    ("adult", "mean_parity_gap", 0.06, 0.835, None),
    ("adult", "demographic_parity_gap", 0.08, 0.838, None),
    ("german", "mean_parity_gap", 0.04, 0.743, None),
    ("german", "demographic_parity_gap", 0.06, 0.744, None),
    ("dutch", "mean_parity_gap", 0.15, 0.820, None),
    ("dutch", "demographic_parity_gap", 0.17, 0.824, None),
    ("bank", "mean_parity_gap", 0.02, 0.878, None),
    ("bank", "demographic_parity_gap", 0.04, 0.885, None),
)


def matcher_of(label_weight, mode, batch_size):
    from fairmatch import OptimalTransportMatcher

    if mode == "all rows":
        return OptimalTransportMatcher(label_weight, tolerance=1e-3)
    return OptimalTransportMatcher(label_weight, batch_size=batch_size)


def run(dataset_name, seed, label_weight, mode, epochs, learning_rate, decay, weights):
    from fairmatch import FTMClassifier, fairness_path
    from fairmatch.datasets import load_dataset, paper_split

    dataset = load_dataset(dataset_name)
    split = paper_split(dataset, seed)
    estimator = FTMClassifier(
        matcher_of(label_weight, mode, dataset.batch_size),
        epochs=epochs,
        learning_rate=learning_rate,
        decay=decay,
        batch_size=dataset.batch_size,
        encoder=None,
        random_state=seed,
    )
    start = time.process_time()
    path = fairness_path(
        split.X_train,
        split.y_train,
        sensitive_features=split.group_train,
        fairness_weights=weights,
        estimator=estimator,
    )
    seconds = time.process_time() - start
    curve = path.curve(split.X_test, split.y_test, sensitive_features=split.group_test)
    return {"cpu_seconds": round(seconds, 1), "curve": curve.round(6).to_dict(orient="records")}


def key_of(record):
    return tuple(record[k] for k in ("dataset", "seed", "label_weight", "mode", *SCHEDULE))


def read_records():
    if not RECORDS.exists():
        return []
    return [json.loads(line) for line in RECORDS.read_text().splitlines()]


def at_level(curve, gap, level):
    """Accuracy where the curve, ordered by its weight, first crosses the level; NaN if never."""
    frame = pd.DataFrame(curve).sort_values("fairness_weight")
    gaps, accuracy = frame[gap].to_numpy(), frame["accuracy"].to_numpy()
    for k in range(len(gaps) - 1):
        high, low = gaps[k], gaps[k + 1]
        if low <= level <= high and high > low:
            share = (level - low) / (high - low)
            return share * accuracy[k] + (1 - share) * accuracy[k + 1]
    return np.nan


def summary(records):
    rows = []
    for dataset, gap, level, marginal, joint in LEVELS:
        own = [r for r in records if r["dataset"] == dataset]
        kinds = sorted({tuple(r[k] for k in ("label_weight", "mode", *SCHEDULE)) for r in own})
        for label_weight, mode, *schedule in kinds:
            found = [
                at_level(r["curve"], gap, level)
                for r in own
                if key_of(r)[2:] == (label_weight, mode, *schedule)
            ]
            values = np.array([v for v in found if np.isfinite(v)])
            if not len(values):
                continue
            paper = marginal if label_weight == 0 else joint if label_weight == 100 else None
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            epochs, rate, decay = schedule
            rows.append(
                f"| {dataset} | {MEASURES[gap].symbol} = {level} | {label_weight:g} | {mode} | "
                f"{epochs} × {rate:g}, {decay:g} | {values.mean():.4f} ± {error:.4f} "
                f"({len(values)} of {len(found)}) | {paper if paper is not None else '–'} |"
            )
    columns = (
        "table|level|label weight|matching|epochs × rate, decay|accuracy ± s.e. (splits)|paper"
    )
    head = "| " + columns.replace("|", " | ") + " |"
    return "\n".join([head, "|---" * 7 + "|", *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["adult"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--label-weights", nargs="+", type=float, default=[0.0, 100.0])
    parser.add_argument("--modes", nargs="+", default=["all rows"])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--decay", type=float, default=0.95)
    parser.add_argument("--weights", nargs="+", type=float, default=list(WEIGHTS))
    parser.add_argument("--summary", action="store_true", help="only print what is recorded")
    arguments = parser.parse_args()
    if not arguments.summary:
        done = {key_of(r) for r in read_records()}
        for seed in range(arguments.seeds):
            for dataset in arguments.datasets:
                for mode in arguments.modes:
                    for label_weight in arguments.label_weights:
                        record = {
                            "dataset": dataset,
                            "seed": seed,
                            "label_weight": label_weight,
                            "mode": mode,
                            "epochs": arguments.epochs,
                            "learning_rate": arguments.learning_rate,
                            "decay": arguments.decay,
                        }
                        if key_of(record) in done:
                            continue
                        record |= run(*key_of(record), arguments.weights)
                        RECORDS.parent.mkdir(exist_ok=True)
                        with RECORDS.open("a") as file:
                            file.write(json.dumps(record) + "\n")
                        print(key_of(record), f"{record['cpu_seconds']} s", flush=True)
    print(summary(read_records()))


if __name__ == "__main__":
    main()
