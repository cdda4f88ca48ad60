"""What it costs to decide without the group, and to learn from estimated groups, on Adult.

python -m benchmarks.blind 0 1 2 3 4
python -m benchmarks.blind page

Three quarters of the rows train, by split. A fifth of these have known groups and choose the
weight, by accuracy within a bound on the gap, and the test rows report. One line of
records/blind.jsonl, a whole curve, is written for each split, method, criterion and share of hidden
groups; lines that it has are not computed again. "page" writes results/blind.md and its figure.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier
from paper.readings import table

from fairmatch import (
    FTMBoostingClassifier,
    GroupBlindClassifier,
    fairness_path,
    group_probabilities,
)
from fairmatch.datasets import load_adult
from fairmatch.measures import demographic_parity_gap, equalized_odds_gap, random_subset_gaps
from fairmatch.people.encoding import TableEncoder

RECORDS = Path(__file__).parent / "records" / "blind.jsonl"
RESULTS = Path(__file__).parents[1] / "results"
BOUNDS = {"demographic_parity": (0.02, 0.035, 0.05, 0.08), "equalized_odds": (0.035,)}
GAPS = {"demographic_parity": demographic_parity_gap, "equalized_odds": equalized_odds_gap}
HIDDEN = (0.0, 0.5, 0.9, 1.0)
WEIGHTS = (0.0, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 6.0, 10.0, 16.0)
STRENGTHS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
EQUAL = (
    "Accuracy (half-space gap) at equal gaps on the test rows, interpolated between the models of "
    "each curve. Only splits in which both blind curves reach the gap are used."
)
PUBLISHED = (
    "The authors of LinearPost report an accuracy of 0.8572 at a gap of 0.051 for their blind "
    "trees on Adult (arXiv 2405.04025), in an experiment of their own."
)
RATIO, FTM, WITH = "likelihood ratio, blind", "FTM, blind", "FTM, with the group"


def trees():
    return LGBMClassifier(n_estimators=200, verbose=-1, n_jobs=1, random_state=0)


def method(name, criterion):
    """Return the estimator of a method, and its weights."""
    shared = {"criterion": criterion, "random_state": 0}
    if name == RATIO:
        return GroupBlindClassifier(trees(), **shared), STRENGTHS
    return FTMBoostingClassifier(trees(), sensitive_at_prediction=name == WITH, **shared), WEIGHTS


def split(n_rows, seed):
    """Return the rows that train, choose and report."""
    order = np.random.default_rng(seed).permutation(n_rows)
    cut = n_rows * 3 // 4
    return order[: cut * 4 // 5], order[cut * 4 // 5 : cut], order[cut:]


def hide(X, groups, train, choose, share, seed):
    """Return the groups of the training rows, of which a share is hidden and estimated.

    The model of the group learns from the rows that are not hidden. If all are, it learns from
    1,000 of the rows that choose.
    """
    if share == 0.0:
        return groups[train]
    hidden = np.random.default_rng([seed, 77]).random(len(train)) < share
    known = train[~hidden] if share < 1.0 else choose[:1000]
    model = trees().fit(X.iloc[known], groups[known])
    values = (groups[train, None] == model.classes_).astype(float)
    values[hidden] = model.predict_proba(X.iloc[train[hidden]])
    return group_probabilities(values, labels=model.classes_.tolist())


def curve(weights, path, criterion, rows, encoded):
    """Return the accuracy and the gaps of every model on the rows that choose and report."""
    found = []
    for weight, model in zip(weights, path.models, strict=True):
        facts = {"weight": weight}
        for part, (X, y, groups) in rows.items():
            given = {"sensitive_features": groups} if model.sensitive_at_prediction else {}
            decided = model.predict(X, **given).astype(float)
            facts[f"{part}_accuracy"] = float(np.mean(decided == y))
            facts[f"{part}_gap"] = GAPS[criterion](y, decided, sensitive_features=groups)
            facts[f"{part}_accepted"] = float(decided.mean())
        gaps = random_subset_gaps(
            None, decided, sensitive_features=groups, X=encoded, random_state=0
        )
        facts["half_space_gap"] = float(np.nanquantile(gaps, 0.95))
        found.append({name: round(value, 5) for name, value in facts.items()})
    return found


def pick(curve, bound):
    """Return the candidate most accurate on the rows that choose, within the bound there."""
    kept = [one for one in curve if one["tune_gap"] <= bound and one["tune_accepted"] >= 0.01]
    return max(kept, key=lambda one: one["tune_accuracy"], default=None)


def line(records, bound):
    """Return the cells of a method at a bound: means over splits and standard errors."""
    found = [own for own in (pick(one["curve"], bound) for one in records) if own is not None]
    if len(found) * 2 < len(records) or not found:
        return [f"{bound:g}", "not reached", "", "", f"{len(found)} of {len(records)}"]
    cells = []
    for name in ("test_accuracy", "test_gap", "half_space_gap"):
        values = [own[name] for own in found]
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
        cells.append(f"{np.mean(values):.4f} ± {error:.4f}")
    return [f"{bound:g}", *cells, f"{len(found)} of {len(records)}"]


def at_gap(curve, gap):
    """Return accuracy and half-space gap where a curve has this test gap, or None beyond its ends.

    Between two models they are interpolated in the order of the gap.
    """
    models = sorted(curve, key=lambda one: one["test_gap"])
    gaps = [one["test_gap"] for one in models]
    if not gaps[0] <= gap <= gaps[-1]:
        return None
    return [
        float(np.interp(gap, gaps, [one[name] for one in models]))
        for name in ("test_accuracy", "half_space_gap")
    ]


def same_gap(known, bounds):
    """Return the rows of the table of all methods at equal test gaps."""
    rows = []
    for gap in bounds:
        found = [{one["seed"]: at_gap(one["curve"], gap) for one in own} for own in known.values()]
        seeds = [seed for seed in found[0] if all(own.get(seed) for own in found[:2])]
        cells = []
        for own in found:
            reached = [own[seed] for seed in seeds if own.get(seed)]
            accuracy, half = np.mean(reached, axis=0)
            few = f", {len(reached)} splits" * (len(reached) < len(seeds))
            cells.append(f"{accuracy:.4f} ({half:.3f}){few}")
        rows.append([f"{gap:g}", *cells, str(len(seeds))])
    return rows


def page():
    """Write results/blind.md and results/blind.svg from what is recorded."""
    records = [json.loads(own) for own in RECORDS.read_text().splitlines()]
    parts = {}
    for one in records:
        parts.setdefault((one["criterion"], one["hidden"], one["method"]), []).append(one)
    names = ["method", "bound", "accuracy", "gap", "half-space gap", "splits"]
    lines = [
        "# Decisions without the group, on Adult",
        "",
        "Written by `python -m benchmarks.blind page` from `benchmarks/records/blind.jsonl`. Of "
        "each split, 60% of the rows are for training and 25% for the test. On the other 15%, "
        "whose sex is known, we choose the weight: that of the most accurate model whose gap is "
        "within the bound. All methods use LightGBM with 200 trees. Gaps are gaps of decisions. "
        "The half-space gap is the 95% quantile of the gaps in 1,000 random half-spaces of the "
        "features. Figures are means over the splits, on the test rows, ± standard errors.",
    ]
    for criterion, bounds in BOUNDS.items():
        lines += ["", f"## {criterion.replace('_', ' ').capitalize()}, every sex known", ""]
        known = {key[2]: own for key, own in parts.items() if key[:2] == (criterion, 0.0)}
        rows = [[name, *line(own, bound)] for bound in bounds for name, own in known.items()]
        lines.append(table(names, rows))
        for bound in bounds:
            both = [{one["seed"]: pick(one["curve"], bound) for one in known.get(name, [])}
                    for name in (FTM, RATIO)]  # fmt: skip
            seeds = [seed for seed in both[0] if both[0][seed] and both[1].get(seed)]
            if seeds:
                accuracy, half = (
                    np.mean([both[0][seed][name] - both[1][seed][name] for seed in seeds])
                    for name in ("test_accuracy", "half_space_gap")
                )
                lines += ["", f"At {bound:g}, FTM without the group differs from the likelihood "
                          f"ratio by {accuracy:+.4f} in accuracy and {half:+.4f} in half-space gap "
                          f"({len(seeds)} splits)."]  # fmt: skip
        lines += ["", EQUAL, "", table(["test gap", *known, "splits"], same_gap(known, bounds))]
    lines += ["", PUBLISHED, "", "## Sex hidden in training, demographic parity", "",
              "Where the sex is hidden, a model estimates it as a probability. The model learns "
              "from the rows whose sex is not hidden; if all are hidden, from 1,000 of the rows on "
              "which the weight is chosen.", "",
              "![Accuracy and true gap by share hidden](blind.svg)", ""]  # fmt: skip
    rows = [
        [f"{share:.0%}", name, *line(own, bound)]
        for (criterion, share, name), own in parts.items()
        if criterion == "demographic_parity" and name != WITH
        for bound in BOUNDS[criterion]
    ]
    lines.append(table(["hidden", *names], rows))
    (RESULTS / "blind.md").write_text("\n".join(lines) + "\n")
    draw(parts)


def draw(parts):
    """Draw mean accuracy against mean true gap along the weights, by share of hidden groups."""
    import altair as alt

    from fairmatch.report.charts import save_chart, standalone

    rows = []
    for (criterion, share, name), own in parts.items():
        if criterion == "demographic_parity" and name != WITH:
            for place, one in enumerate(own[0]["curve"]):
                means = {
                    what: float(np.mean([curve["curve"][place][f"test_{what}"] for curve in own]))
                    for what in ("accuracy", "gap")
                }
                rows.append({"method": name, "hidden": f"{share:.0%}", "weight": one["weight"],
                             **means})  # fmt: skip
    chart = alt.Chart(alt.Data(values=rows)).mark_line(point=True)
    chart = chart.encode(
        x=alt.X("gap:Q", title="gap of selection rates on the test rows, by true sex"),
        y=alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(zero=False)),
        color=alt.Color("hidden:N", title="sex hidden"),
        strokeDash=alt.StrokeDash("method:N", title=None),
        order="weight:Q",
    )
    save_chart(standalone(chart), RESULTS / "blind.svg")


def main():
    """Run what is not recorded yet, or write the page."""
    if sys.argv[1:] == ["page"]:
        return page()
    warnings.simplefilter("ignore")
    done = set()
    if RECORDS.exists():
        lines = map(json.loads, RECORDS.read_text().splitlines())
        done = {(own["seed"], own["method"], own["criterion"], own["hidden"]) for own in lines}
    adult = load_adult()
    X, y, groups = adult.X, adult.y.to_numpy(), np.asarray(adult.sensitive_features)
    studies = [(name, "demographic_parity", share) for share in HIDDEN for name in (RATIO, FTM)]
    studies += [(WITH, "demographic_parity", 0.0)]
    studies += [(name, "equalized_odds", 0.0) for name in (RATIO, FTM, WITH)]
    for seed in map(int, sys.argv[1:] or range(5)):
        train, choose, report = split(len(y), seed)
        encoded = TableEncoder(missing="encode").fit(X.iloc[train]).transform(X.iloc[report])
        rows = {
            name: (X.iloc[own], y[own], groups[own])
            for name, own in (("tune", choose), ("test", report))
        }
        for name, criterion, share in studies:
            if (seed, name, criterion, share) in done:
                continue
            estimator, weights = method(name, criterion)
            path = fairness_path(
                X.iloc[train],
                y[train],
                sensitive_features=hide(X, groups, train, choose, share, seed),
                fairness_weights=weights,
                estimator=estimator,
            )
            found = {"seed": seed, "method": name, "criterion": criterion, "hidden": share}
            found["curve"] = curve(weights, path, criterion, rows, encoded)
            with RECORDS.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(seed, name, criterion, share, flush=True)


if __name__ == "__main__":
    main()
