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
    FTMClassifier,
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
from paper.readings import Reading, crossing, mean_cell, page_of, table

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


def study_given(name, seed):
    """Return accuracy, marginal and conditional gaps of five methods."""
    data = load_adult() if name == "adult" else load_acsincome()
    factors = ["occupation", "hours_per_week"]
    train, test = halves(data, seed, None if name == "adult" else ROWS)
    if name == "acsincome":
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
    for method, model in methods.items():
        start = time.process_time()
        model.fit(*train[:2], sensitive_features=train[2])
        scores = model.predict_proba(test[0], sensitive_features=test[2])[:, 1]
        known = {"sensitive_features": test[2], "given": test[0][factors]}
        (gap,) = conditional_gaps(test[1], scores, **known)
        found[method] = {
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


def study_relevance(name, seed):
    """Return the curve of the marginal map under both distances, with positions."""
    train, test = halves(LOAD[name](), seed)
    generator = np.random.default_rng(seed)
    weights = relevance(train[0], Labels(train[1].astype(float), (0, 1)))
    alike = {"range": read_similarity({own: 1.0 for own in train[0]}, train[0]),
             "relevance": Similarity("relevance", weights)}  # fmt: skip
    drawn = [
        generator.permutation(np.flatnonzero(test[2] == label))[:MATCHED]
        for label in np.unique(test[2])
    ]
    rows = np.sort(np.concatenate(drawn))
    numbers = TableEncoder().fit(train[0]).transform(test[0])
    found = {"weights": weights}
    for how in alike:
        model = FTMBoostingClassifier(
            trees(seed),
            transport="marginal",
            similarity=None if how == "range" else weights,
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
        found[how] = curve
    return found


def study_network(name, seed):
    """Return what networks with ``max_gap=0.05`` reach, by how they match people."""
    train, test = halves(LOAD[name](), seed)
    found = {}
    for transport in ("marginal", "predicted"):
        start = time.process_time()
        model = FTMClassifier(transport=transport, max_gap=0.05, random_state=seed)
        model.fit(*train[:2], sensitive_features=train[2])
        scores = model.predict_proba(test[0], sensitive_features=test[2])[:, 1]
        found[transport] = {
            "accuracy": float(((scores >= 0.5) == test[1]).mean()),
            "gap": demographic_parity_gap(test[1], scores, sensitive_features=test[2]),
            "weight": float(model.fairness_weight_),
            "seconds": time.process_time() - start,
        }
    return found


TASKS = [
    *(("given", "adult", seed) for seed in range(5)),
    *(("given", "acsincome", seed) for seed in range(2)),
    *(("relevance", name, seed) for seed in range(5) for name in LOAD),
    *(("network", "adult", seed) for seed in (10, 0, 1)),
]


LEVELS = (0.1, 0.05, 0.03)  # of ΔDP, at which the two distances are compared


def page():
    """Return the page of the studies, from the records."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(RECORDS.glob("*"))]
    related = {name: _of(found, "relevance", name) for name in LOAD}
    given = [part for name in ("adult", "acsincome")
             for part in _given(name, _of(found, "given", name))]  # fmt: skip
    levels = [f"{what} at ΔDP {level:g}" for what in ("accuracy", "95 % half-space gap")
              for level in LEVELS]  # fmt: skip
    networks = [
        [str(record["seed"]), name, f"{own['accuracy']:.4f}", f"{own['gap']:.4f}",
         f"{own['weight']:.3g}", f"{own['seconds']:.0f}"]
        for record in found if record["study"] == "network"
        for name, own in record["found"].items()
    ]  # fmt: skip
    both, one = _verdict(related)
    return page_of(
        "likeness",
        n_found=len(found),
        n_runs=len(TASKS),
        rows=f"{ROWS:,}",
        given="\n\n".join(given),
        n_weights=len(WEIGHTS),
        distances=table(
            ["table", "matched by", *levels],
            [row for name, own in related.items() for row in _distances(name, own)],
        ),
        both=both,
        one=one,
        matched=MATCHED,
        positions=table(
            ["table", "model", "accuracy", "ΔDP", "position by range", "position by relevance"],
            [row for name, own in related.items() for row in _positions(name, own)],
        ),
        networks=table(
            ["seed", "map", "accuracy", "ΔDP", "fairness weight", "CPU seconds"], networks
        ),
    )


def _of(found, study, name):
    """Return what one study found on one table, split by split."""
    return [r["found"] for r in found if (r["study"], r["table"]) == (study, name)]


def _given(name, own):
    """Return a sentence and a table of the models given a factor."""
    if not own:
        return []
    women, men = np.mean([f["plain"]["overlap"] for f in own], axis=0)
    columns = ("accuracy", "marginal", "conditional", "absolute", "chance")
    rows = [
        [method, *(_mean([abs(f[method][k]) if k == "marginal" else f[method][k] for f in own])
                   for k in columns)]
        for method in own[0]
    ]  # fmt: skip
    names = ["method", "accuracy", "marginal gap", "gap within strata",
             "mean absolute gap within strata", "the same by chance"]  # fmt: skip
    return [
        f"{name}: {len(own)} splits, {own[0]['plain']['strata']} strata; {women:.1%} of women and "
        f"{men:.1%} of men are in strata with people of both sexes.",
        table(names, rows),
    ]


def _distances(name, own):
    """Return rows of accuracy and subset gaps at equal ΔDP, and of the paired differences."""
    rows = {how: [] for how in ("range", "relevance", "relevance less range")}
    for key in ("accuracy", "half-spaces"):
        for level in LEVELS:
            pairs = _pairs(own, key, level)
            values = [*zip(*pairs, strict=True)] or [(), ()]
            less = [b - a for a, b in pairs]
            for cells, these in zip(rows.values(), (*values, less), strict=True):
                cells.append(f"{_mean(these)} ({len(these)})" if these else "not reached")
    return [[name, how, *cells] for how, cells in rows.items()] if own else []


def _verdict(related):
    """Return where relevance is more accurate with a smaller half-space gap, and with a larger."""
    where = {(1, -1): [], (1, 1): []}
    for name, own in related.items():
        for level in LEVELS:
            signs = tuple(
                _clearly([b - a for a, b in _pairs(own, key, level)])
                for key in ("accuracy", "half-spaces")
            )
            where.get(signs, []).append(f"{name} at {level:g}")
    return [", ".join(places) or "no table" for places in where.values()]


def _clearly(values):
    """Return the sign of a mean that is beyond two standard errors, or else 0."""
    found = Reading.of(dict(enumerate(values)))
    return int(np.sign(found.mean)) if abs(found.mean) > 2.0 * found.error else 0


def _pairs(own, key, level):
    """Return a quantity at a level of ΔDP under both distances, for splits that come to it."""
    pairs = [
        [crossing([p["gap"] for p in f[how]], [p[key] for p in f[how]], level)
         for how in ("range", "relevance")]
        for f in own
    ]  # fmt: skip
    return [pair for pair in pairs if None not in pair]


def _positions(name, own):
    """Return rows of where the models of some weights lie under both distances."""
    rows = []
    for place, weight in enumerate(WEIGHTS if own else ()):
        for how in ("range", "relevance"):
            curves = [f[how][place] for f in own]
            if "position by range" in curves[0] and (weight > 0.0 or how == "range"):
                words = f"weight {weight:g}, matched by {how}" if weight > 0.0 else "plain"
                keys = ("accuracy", "gap", "position by range", "position by relevance")
                rows.append([name, words, *(_mean([p[key] for p in curves]) for key in keys)])
    return rows


def _mean(values):
    """Return a mean with its standard error."""
    return mean_cell(Reading.of(dict(enumerate(values))), 3, "never")


STUDIES = {"given": study_given, "relevance": study_relevance, "network": study_network}


def main(command):
    """Make the records that are missing, or write the page."""
    if command == "page":
        (ROOT / "likeness.md").write_text(page(), encoding="utf-8")
        return
    warnings.simplefilter("ignore")
    RECORDS.mkdir(exist_ok=True)
    for study, data, seed in TASKS:
        file = RECORDS / f"{study}-{data}-{seed}.json"
        if not file.exists():
            start = time.process_time()
            found = STUDIES[study](data, seed)
            record = {"study": study, "table": data, "seed": seed, "found": found,
                      "seconds": time.process_time() - start}  # fmt: skip
            file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
