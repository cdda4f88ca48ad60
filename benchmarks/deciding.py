"""Whether ``FTMBoostingClassifier(max_gap=g)`` returns models that decide, with its defaults.

    python -m benchmarks.deciding --seeds 0 1 2

A model decides if it accepts between 1% and 99% of the test rows. The models of a path depend
neither on the bound nor on each other, so every weight is trained once, and the choice is made
anew from the records. What stands in benchmarks/records/deciding.json is not trained again. The
table is in docs/evidence/bound.md.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from fairmatch import FTMBoostingClassifier
from fairmatch.datasets import load_dataset, paper_split
from fairmatch.exceptions import FairmatchWarning
from fairmatch.learning.choice import Bound
from fairmatch.learning.trees import BOOSTING_CHOICES
from fairmatch.people.files import write_whole

RECORDS = Path(__file__).parent / "records" / "deciding.json"
TABLES = ("adult", "german", "bank", "dutch", "acsincome")
BOUNDS = (0.02, 0.05, 0.1)
GAP = "demographic_parity_gap"
COLUMNS = ["fairness_weight", "accuracy", "acceptance_rate", GAP]


def trained(table, seed, weights):
    """Measure models that ``max_gap`` chooses from, on held-out and on test rows."""
    data = load_dataset(table)
    split = paper_split(data, seed)
    (X, y, group), test = (
        (data.X.iloc[rows], np.asarray(data.y)[rows], np.asarray(data.sensitive_features)[rows])
        for rows in (split.train_index, split.test_index)
    )
    model = FTMBoostingClassifier(max_gap=1.0, fairness_weight=weights, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairmatchWarning)
        model.fit(X, y, sensitive_features=group)
    tested = model.path_.curve(test[0], test[1], sensitive_features=test[2])
    return {
        f"{weight:g}": {
            where: curve[COLUMNS].iloc[place].round(5).to_dict()
            for where, curve in (("held_out", model.validation_curve_), ("test", tested))
        }
        for place, weight in enumerate(weights)
    }


def chosen(record, bound):
    """Return what the model kept for a bound does with the test rows, and whether it decides."""
    rows = [record[f"{weight:g}"] for weight in BOOSTING_CHOICES]
    held_out, test = (pd.DataFrame([row[where] for row in rows]) for where in ("held_out", "test"))
    place, _ = Bound(bound, GAP).best(held_out.assign(score=held_out["accuracy"]))
    row = test.iloc[place]
    return row, 0.01 <= row["acceptance_rate"] <= 0.99


def recorded():
    return json.loads(RECORDS.read_text()) if RECORDS.exists() else {}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deciding", description=__doc__)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    asked = parser.parse_args()
    print("| table | seed | g | weight | gap | accepted | accuracy | decides |")
    print("|---|---|---|---|---|---|---|---|")
    for table in asked.tables:
        for seed in asked.seeds:
            name = f"{table}-{seed}"
            record = recorded().get(name, {})
            left = [weight for weight in BOOSTING_CHOICES if f"{weight:g}" not in record]
            if left:
                record |= trained(table, seed, left)
                records = recorded() | {name: record}  # another run may have written meanwhile
                RECORDS.parent.mkdir(exist_ok=True)
                write_whole(RECORDS, json.dumps(records, sort_keys=True) + "\n")
            for bound in BOUNDS:
                row, decides = chosen(record, bound)
                print(
                    f"| {table} | {seed} | {bound:g} | {row['fairness_weight']:g} | "
                    f"{row[GAP]:.3f} | {row['acceptance_rate']:.3f} | {row['accuracy']:.3f} | "
                    f"{'yes' if decides else '**no**'} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
