"""Like with like: models given a factor, and two distances between people.

``python -m paper.likeness run`` makes the records that are missing, one after the other, and
``python -m paper.likeness page`` writes ``results/likeness.md`` from them.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

from fairmatch import (
    FTMBoostingClassifier,
    OptimalTransportMatcher,
    QuantileAlignmentClassifier,
    fairness_path,
    nearest_fair_matching,
)
from fairmatch.datasets import load_acsincome, load_adult, load_bank, load_dutch, load_german
from fairmatch.measures import conditional_gaps, demographic_parity_gap, random_subset_gaps
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.people import Labels
from fairmatch.people.similarity import Similarity, read_similarity, relevance

ROOT = Path(__file__).parents[1] / "results"
RECORDS = ROOT / "likeness"
LOAD = {"german": load_german, "adult": load_adult, "bank": load_bank, "dutch": load_dutch}
# First codes of the groups of occupations, by the Census Bureau's list of 2018.
GROUPS = (10, 500, 800, 1005, 1305, 1600, 2001, 2100, 2205, 2600, 3000, 3601, 3700, 4000, 4200,
          4330, 4700, 5000, 6005, 6200, 6800, 7000, 7700, 9005, 9800)  # fmt: skip
WEIGHTS = (0.0, 0.3, 0.6, 1.0, 2.0, 4.0, 8.0)
ROWS = 40_000  # of ACSIncome, which has 332,900
MATCHED = 400  # people of each group whose position is taken


def trees(seed):
    """Return the trees of every method."""
    return LGBMClassifier(n_estimators=100, n_jobs=1, random_state=seed, verbose=-1)


def halves(data, seed, most=None):
    """Return training and test rows: X, y and groups of each."""
    parts = data.X, np.asarray(data.y), np.asarray(data.sensitive_features)
    if most is not None:
        rows = np.random.default_rng(seed).permutation(len(parts[1]))[:most]
        parts = parts[0].iloc[rows].reset_index(drop=True), parts[1][rows], parts[2][rows]
    strata = pd.Series(parts[2]).astype(str) + parts[1].astype(str)
    split = train_test_split(*parts, test_size=0.25, random_state=seed, stratify=strata)
    return split[0::2], split[1::2]


def study_given(table, seed):
    """Return accuracy, marginal and conditional gaps of five methods."""
    data = load_adult() if table == "adult" else load_acsincome()
    factors = ["occupation", "hours_per_week"]
    train, test = halves(data, seed, None if table == "adult" else ROWS)
    if table == "acsincome":
        factors = ["group"]
        for own in (train, test):
            code = np.searchsorted(GROUPS, own[0]["occupation"].astype(int), side="right")
            own[0]["group"] = pd.Categorical(code.astype(str))
    plain = trees(seed)
    ftm = {"fairness_weight": 2.0, "random_state": seed}
    methods = {
        "plain": FTMBoostingClassifier(plain, fairness_weight=0.0, random_state=seed),
        "FTM": FTMBoostingClassifier(plain, **ftm),
        "FTM given": FTMBoostingClassifier(plain, given=factors, **ftm),
        "alignment": QuantileAlignmentClassifier(plain),
        "alignment given": QuantileAlignmentClassifier(plain, given=factors),
    }
    found = {}
    for name, model in methods.items():
        start = time.process_time()
        model.fit(*train[:2], sensitive_features=train[2])
        scores = model.predict_proba(test[0], sensitive_features=test[2])[:, 1]
        known = {"sensitive_features": test[2], "given": test[0][factors]}
        (gap,) = conditional_gaps(test[1], scores, **known)
        found[name] = {
            "accuracy": float(((scores >= 0.5) == test[1]).mean()),
            "marginal": gap.marginal,
            "conditional": gap.value,
            "absolute": gap.absolute,
            "chance": gap.chance,
            "overlap": gap.overlap,
            "strata": len(gap.strata),
            "seconds": time.process_time() - start,
        }
    return found


def position(scores, groups, X, alike):
    """Return where the nearest fair matching lies between the nearest (0) and a random one (1)."""
    points = alike.points(X).dense()
    sides = [points[groups == label] for label in np.unique(groups)]
    smallest = OptimalTransportMatcher().match(points, groups).transport_cost(points)
    fair = nearest_fair_matching(scores, groups, points, slack=0.005).transport_cost(points)
    means, variances = zip(*((own.mean(axis=0), own.var(axis=0)) for own in sides), strict=True)
    random = float(((means[0] - means[1]) ** 2 + sum(variances)).sum())
    return (fair - smallest) / (random - smallest)


def study_relevance(table, seed):
    """Return the curve of the marginal map under both distances, with positions."""
    train, test = halves(LOAD[table](), seed)
    generator = np.random.default_rng(seed)
    weights = relevance(train[0], Labels(train[1].astype(float), (0, 1)))
    alike = {"range": read_similarity({name: 1.0 for name in train[0]}, train[0]),
             "relevance": Similarity("relevance", weights)}  # fmt: skip
    drawn = [
        generator.permutation(np.flatnonzero(test[2] == label))[:MATCHED]
        for label in np.unique(test[2])
    ]
    rows = np.sort(np.concatenate(drawn))
    numbers = TableEncoder().fit(train[0]).transform(test[0])
    found = {"weights": weights}
    for name in alike:
        model = FTMBoostingClassifier(
            trees(seed),
            transport="marginal",
            similarity=None if name == "range" else weights,
            random_state=seed,
        )
        path = fairness_path(
            *train[:2], sensitive_features=train[2], estimator=model, fairness_weights=WEIGHTS
        )
        curve = []
        for weight, scores in zip(
            WEIGHTS, path.scores(test[0], sensitive_features=test[2]), strict=True
        ):
            subsets = random_subset_gaps(
                None, scores, sensitive_features=test[2], X=numbers, n_subsets=300, random_state=0
            )
            curve.append(
                {
                    "weight": weight,
                    "accuracy": float(((scores >= 0.5) == test[1]).mean()),
                    "gap": demographic_parity_gap(test[1], scores, sensitive_features=test[2]),
                    "accepted": float((scores >= 0.5).mean()),
                    "half-spaces": float(np.nanquantile(subsets, 0.95)),
                    **{
                        f"position by {other}": position(
                            scores[rows], test[2][rows], test[0].iloc[rows], own
                        )
                        for other, own in alike.items()
                        if weight in (0.0, 1.0, 2.0, 4.0)
                    },
                }
            )
        found[name] = curve
    return found


TASKS = [
    *(("given", "adult", seed) for seed in range(5)),
    *(("given", "acsincome", seed) for seed in range(2)),
    *(("relevance", table, seed) for seed in range(5) for table in LOAD),
]


def page():
    """Return the page of both studies, from the records."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(RECORDS.glob("*"))]
    lines = ["# Like with like", "", f"{len(found)} of {len(TASKS)} runs are recorded. Made by "
             "`python -m paper.likeness page`; no number is typed by hand. Means over random "
             "splits ± standard error; the models are LightGBM's, with 100 trees."]  # fmt: skip
    lines += ["", "## Models given a factor", "", *GIVEN_WORDS, ""]
    for table in ("adult", "acsincome"):
        own = [r["found"] for r in found if (r["study"], r["table"]) == ("given", table)]
        if not own:
            continue
        first = own[0]["plain"]
        lines += [
            f"{table}: {len(own)} splits, {first['strata']} strata; "
            f"{np.mean([f['plain']['overlap'][0] for f in own]):.1%} of women and "
            f"{np.mean([f['plain']['overlap'][1] for f in own]):.1%} of men can be compared.",
            "",
            "| method | accuracy | marginal gap | gap within strata | mean absolute gap within "
            "strata | the same by chance |",
            "|---|---|---|---|---|---|",
            *(
                f"| {name} | "
                + " | ".join(
                    _mean([abs(f[name][k]) if k == "marginal" else f[name][k] for f in own])
                    for k in ("accuracy", "marginal", "conditional", "absolute", "chance")
                )
                + " |"
                for name in own[0]
            ),
            "",
        ]
    lines += ["## Two distances", "", *RELEVANCE_WORDS, ""]
    lines += [
        "| table | splits | weight | accuracy | gap | 95 % half-space gap | position by range | "
        "position by relevance |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for table in LOAD:
        own = [r["found"] for r in found if (r["study"], r["table"]) == ("relevance", table)]
        for place, weight in enumerate(WEIGHTS if own else ()):
            if weight not in (0.0, 1.0, 2.0, 4.0):
                continue
            for name in ("range", "relevance"):
                if weight == 0.0 and name == "relevance":
                    continue  # the plain model matches nobody
                cells = [
                    _mean([f[name][place][key] for f in own])
                    for key in ("accuracy", "gap", "half-spaces", "position by range",
                                "position by relevance")
                ]  # fmt: skip
                words = "plain" if weight == 0.0 else f"{weight:g}, matched by {name}"
                lines.append(f"| {table} | {len(own)} | {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


GIVEN_WORDS = [
    "Adult by sex, given occupation and hours per week (five bands), and a sample of "
    f"{ROWS:,} rows of ACSIncome",
    "by sex, given the group of the occupation. FTM matches on predicted scores with weight 2.",
    "Gaps are differences of selection rates on test rows: a quarter of the table.",
]
RELEVANCE_WORDS = [
    "FTM's trees with the marginal map. People are matched by every column's range, or by the",
    "columns' relevance to the training labels. The position of the nearest fair matching lies",
    f"between the nearest matching (0) and a random one (1), for up to {MATCHED} test people of a "
    "group.",
]


def _mean(values):
    """Return a mean with its standard error."""
    if len(values) < 2:
        return f"{np.mean(values):.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def main(command, *tasks):
    """Make the records that are missing, or write the page."""
    if command == "page":
        (ROOT / "likeness.md").write_text(page(), encoding="utf-8")
        return
    warnings.simplefilter("ignore")
    RECORDS.mkdir(exist_ok=True)
    for study, table, seed in TASKS:
        name = f"{study}-{table}-{seed}"
        file = RECORDS / f"{name}.json"
        if file.exists() or (tasks and name not in tasks):
            continue
        start = time.process_time()
        found = {"given": study_given, "relevance": study_relevance}[study](table, seed)
        record = {"study": study, "table": table, "seed": seed, "found": found,
                  "seconds": time.process_time() - start}  # fmt: skip
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        if command == "next":
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
