"""Many groups of uneven size at ``max_gap=.05``, beside fairlearn's ThresholdOptimizer.

    python -m benchmarks.uneven --label after [--tables adult] [--splits 20]

Random splits of Adult by sex and race and of ACSIncome by race. Accuracy is that of all test rows;
the gap is ΔDP over the groups with at least 400 test rows. Every run is one line of
benchmarks/records/uneven.jsonl, with the label of the code that was measured, and is not repeated.
ACSIncome is drawn down to 50,000 rows for every split.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.fair_fit import plain_trees
from benchmarks.timing import Row, appended, recorded

BOUND, LEAST, MOST = 0.05, 400, 50_000
METHODS = ("thresholds", "alignment", "ftm", "ftm-pooled", "plain", "threshold-optimizer")
TABLES = {"adult": ["sex", "race"], "acsincome": "race"}
POOLED = ("pool", 1_500)  # joins six small groups of each table
CONFIDENT = ("thresholds", "alignment", "ftm")


def split(table, seed):
    from fairmatch.datasets import load_dataset
    from fairmatch.learning.path import categorised

    data = load_dataset(table, sensitive=TABLES[table])
    group = data.sensitive_features
    if getattr(group, "ndim", 1) == 2:
        group = group.astype(str).agg(" ".join, axis=1)
    X, y, group = categorised(data.X), np.asarray(data.y), np.asarray(group).astype(str)
    order = np.random.default_rng(seed).permutation(len(y))[:MOST]
    n_test = len(order) // 5
    return [(X.iloc[r], y[r], group[r]) for r in (order[n_test:], order[:n_test])]


def decide(method, confidence, train, test, seed):
    from fairmatch import FTMBoostingClassifier, QuantileAlignmentClassifier

    (X, y, group), (X_test, _, group_test) = train, test
    if method == "plain" or method == "threshold-optimizer":
        names = np.unique(group)
        inputs, new = (
            part.assign(group=np.searchsorted(names, own))
            for part, own in ((X, group), (X_test, group_test))
        )
        if method == "plain":
            return plain_trees(200).fit(inputs, y).predict(new)
        from fairlearn.postprocessing import ThresholdOptimizer

        # fairlearn's own advice: the thresholds are fitted on the rows of the model.
        model = ThresholdOptimizer(
            estimator=plain_trees(200), constraints="demographic_parity",
            objective="accuracy_score", predict_method="predict_proba", tol=BOUND,
        )  # fmt: skip
        model.fit(inputs, y, sensitive_features=group)
        return model._pmf_predict(new, sensitive_features=group_test)[:, 1]
    given = {"max_gap": BOUND, "confidence": confidence, "random_state": seed}
    if method.startswith("ftm"):
        given["small_groups"] = POOLED if method == "ftm-pooled" else "warn"
        model = FTMBoostingClassifier(plain_trees(200), **given)
    else:
        decisions = "threshold" if method == "thresholds" else "align"
        model = QuantileAlignmentClassifier(plain_trees(200), decisions=decisions, **given)
    model.fit(X, y, sensitive_features=group)
    return model.predict(X_test, sensitive_features=group_test)


def run(table, method, confidence, seed):
    train, test = split(table, seed)
    _, y, group = test
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decided = np.asarray(decide(method, confidence, train, test, seed), dtype=np.float64)
    names, sizes = np.unique(group, return_counts=True)
    rates = [decided[group == name].mean() for name in names[sizes >= LEAST]]
    accuracy = np.mean(np.where(y == 1, decided, 1.0 - decided))
    return {"accuracy": round(float(accuracy), 5), "gap": round(float(np.ptp(rates)), 5),
            "groups": len(rates), "cpu": round(time.process_time() - start, 1)}  # fmt: skip


def rows():
    found, gaps = recorded("uneven"), {}
    for table, method, confidence, label in dict.fromkeys(
        (r["table"], r["method"], r["confidence"], r["label"]) for r in found
    ):
        own = [r for r in found if (r["table"], r["method"], r["confidence"], r["label"])
               == (table, method, confidence, label)]  # fmt: skip
        gap = gaps[table, method, confidence, label] = np.mean([r["gap"] for r in own])
        sure = "" if confidence is None else f", confidence {confidence:g}"
        what = f"{table}, {method}{sure} ({label}, {len(own)} splits)"
        yield Row(f"{what}: mean test gap", gap, digits=4)
        yield Row(f"{what}: mean accuracy", np.mean([r["accuracy"] for r in own]), digits=4)
        if confidence is not None:
            more = gap - gaps[table, method, None, label]
            yield Row(f"{what}: mean test gap, less that without confidence", more, 0.0, 4)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.uneven", description=__doc__)
    parser.add_argument("--label", required=True)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--splits", type=int, default=20)
    asked = parser.parse_args()
    for seed in range(20, 20 + asked.splits):
        for table in asked.tables:
            for method in asked.methods:
                for confidence in (None, 0.95) if method in CONFIDENT else (None,):
                    key = {"label": asked.label, "table": table, "method": method,
                           "confidence": confidence, "seed": seed}  # fmt: skip
                    if any(key.items() <= one.items() for one in recorded("uneven")):
                        continue
                    one = run(table, method, confidence, seed)
                    print(appended("uneven", {**key, **one}), flush=True)


if __name__ == "__main__":
    main()
