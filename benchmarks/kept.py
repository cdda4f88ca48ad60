"""What a user gets from ``max_gap``, beside LinearPost on the same rows and trees.

    python -m benchmarks.kept --label after [--seeds 0 1] [--methods thresholds ftm]

Five splits of Adult by sex. LinearPost takes out-of-fold probabilities of all training rows, and
the final model is trained on all of them. A method is compared with LinearPost's own frontier at
the gap that the method reaches on the test rows. Every run is one line of
benchmarks/records/kept.jsonl, with the label of the code that was measured, and is not repeated.
"""

import argparse
import time
import warnings
from functools import cache

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks.fair_fit import plain_trees
from benchmarks.peers.linear_post import linear_post
from benchmarks.timing import Row, appended, recorded

SEEDS = (0, 1, 2, 3, 4)
BOUNDS = {
    "demographic_parity": (0.02, 0.033, 0.05, 0.08),
    "equalized_odds": (0.02, 0.03, 0.04),
}
METHODS = ("thresholds", "ftm", "ftm-thresholds")
MARGINS = {"thresholds": 0.001, "ftm": 0.002, "ftm-thresholds": 0.002}
FRONTIER = (0.0, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 0.06, 0.07, 0.085, 0.1,
            0.12, 0.15)  # fmt: skip


@cache
def split(seed):
    from fairmatch.datasets import load_adult, paper_split
    from fairmatch.learning.path import categorised

    adult = load_adult()
    X, y = categorised(adult.X), np.asarray(adult.y)
    group, parts = np.asarray(adult.sensitive_features), paper_split(adult, seed)
    return [(X.iloc[r], y[r], group[r]) for r in (parts.train_index, parts.test_index)]


def judged(decided, y, group, criterion):
    """Return accuracy and gap of decisions: ΔDP, or the larger of ΔTPR and ΔFPR."""
    decided = np.asarray(decided) >= 0.5
    parts = [np.ones(len(y), dtype=bool)] if criterion == "demographic_parity" else [y == 1, y == 0]
    gaps = []
    for part in parts:
        rates = [decided[part & (group == name)].mean() for name in np.unique(group)]
        gaps.append(max(rates) - min(rates))
    return {"accuracy": float(np.mean(decided == (y == 1))), "gap": float(max(gaps))}


@cache
def probabilities(seed):
    """Return out-of-fold scores of the training rows, and the final model's of the test rows."""
    (X, y, group), (X_test, _, group_test) = split(seed)
    names = sorted(set(group))
    inputs, new = (
        table.assign(group=np.searchsorted(names, own))
        for table, own in ((X, group), (X_test, group_test))
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    unseen = cross_val_predict(plain_trees(200), inputs, y, cv=folds, method="predict_proba")[:, 1]
    return unseen, plain_trees(200).fit(inputs, y).predict_proba(new)[:, 1]


def linear_post_run(seed, criterion, bound):
    (_, _, group), (_, y_test, group_test) = split(seed)
    names = sorted(set(group))
    unseen, scores = probabilities(seed)
    rule = linear_post(unseen, np.searchsorted(names, group), bound, criterion)
    decided = rule(scores, np.searchsorted(names, group_test))
    return judged(decided, y_test, group_test, criterion)


def estimator(method, criterion, bound, seed):
    """Return what a user would call."""
    from fairmatch import FTMBoostingClassifier, QuantileAlignmentClassifier

    given = {"criterion": criterion, "max_gap": bound, "random_state": seed}
    if criterion == "equalized_odds":
        given["gap_measure"] = "worst_case_odds_gap"
    if method == "ftm":
        return FTMBoostingClassifier(plain_trees(200), **given)
    if method == "thresholds":
        return QuantileAlignmentClassifier(plain_trees(200), decisions="threshold", **given)
    # Half of the way by FTM, and the rest by thresholds; both read the groups in the table.
    model = FTMBoostingClassifier(
        plain_trees(200), fairness_weight=0.3, criterion=criterion, sensitive_column="group",
        random_state=seed,
    )  # fmt: skip
    return QuantileAlignmentClassifier(
        model, decisions="threshold", sensitive_column="group", **given
    )


def our_run(method, seed, criterion, bound):
    (X, y, group), (X_test, y_test, group_test) = split(seed)
    model = estimator(method, criterion, bound, seed)
    seen, new = {"sensitive_features": group}, {"sensitive_features": group_test}
    if method == "ftm-thresholds":
        X, X_test = X.assign(group=group), X_test.assign(group=group_test)
        seen, new = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(X, y, **seen)
        cpu = time.process_time() - start
        decided = model.predict(X_test, **new)
    return {**judged(decided, y_test, group_test, criterion), "cpu": round(cpu, 1)}


def at_gap(gap, points):
    """Return LinearPost's accuracy at a gap, interpolated along its frontier on the test rows."""
    gaps, accuracies = np.array(sorted(points)).T
    return float(np.interp(gap, gaps, np.maximum.accumulate(accuracies)))


def rows():
    found = recorded("kept")
    labels = list(dict.fromkeys(r["label"] for r in found if r["method"] != "linear-post"))
    frontiers = {
        (r["seed"], r["criterion"]): [
            (s["gap"], s["accuracy"])
            for s in found
            if s["method"] == "linear-post"
            and (s["seed"], s["criterion"]) == (r["seed"], r["criterion"])
        ]
        for r in found
    }
    for method in METHODS:
        for criterion, bounds in BOUNDS.items():
            for bound in bounds:
                for label in labels:
                    own = [
                        r
                        for r in found
                        if (r["method"], r["criterion"], r["bound"], r["label"])
                        == (method, criterion, bound, label)
                    ]
                    if not own:
                        continue
                    short = np.mean(
                        [
                            at_gap(r["gap"], frontiers[r["seed"], criterion]) - r["accuracy"]
                            for r in own
                        ]
                    )
                    symbol = "ΔDP" if criterion == "demographic_parity" else "worst-case ΔEO"
                    gap, accuracy = (np.mean([r[k] for r in own]) for k in ("gap", "accuracy"))
                    yield Row(
                        f"{method}, {symbol} {bound:g} ({label}, {len(own)} splits: accuracy "
                        f"{accuracy:.4f}, gap {gap:.3f}): LinearPost's accuracy at this gap, less",
                        short,
                        MARGINS[method] if label == labels[-1] else None,
                        4,
                    )


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kept", description=__doc__)
    parser.add_argument("--label", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--methods", nargs="+", default=("linear-post", *METHODS))
    parser.add_argument("--criteria", nargs="+", default=tuple(BOUNDS))
    asked = parser.parse_args()
    for seed in asked.seeds:
        for method in asked.methods:
            for criterion in asked.criteria:
                for bound in FRONTIER if method == "linear-post" else BOUNDS[criterion]:
                    key = {"label": "peer" if method == "linear-post" else asked.label,
                           "method": method, "seed": seed, "criterion": criterion,
                           "bound": bound}  # fmt: skip
                    if any(key.items() <= one.items() for one in recorded("kept")):
                        continue
                    if method == "linear-post":
                        one = linear_post_run(seed, criterion, bound)
                    else:
                        one = our_run(method, seed, criterion, bound)
                    print(appended("kept", {**key, **one}), flush=True)


if __name__ == "__main__":
    main()
