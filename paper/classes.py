r"""Education in five levels, predicted fairly: a study of several classes on ACSIncome.

Education (``SCHL``) is predicted from the other columns in five levels. Groups are sex, or the five
largest races. Models are trained on training rows, offsets are fitted and fairness weights chosen
on validation rows, and everything is measured on test rows. ``python -m paper.classes`` makes the
records that are missing, and writes ``results/classes.md``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from fairmatch import (
    FTMBoostingClassifier,
    MatchSmoothingClassifier,
    fairness_path,
    fit_adjustment,
)
from fairmatch.datasets import load_acsincome
from fairmatch.measures import MEASURES, demographic_parity_gap, equalized_odds_gap
from fairmatch.people.groups import read_criterion
from fairmatch.people.outcome import largest_class
from paper.readings import page_of, table

RESULTS = Path(__file__).parents[1] / "results"
LEVELS = ("1 below high school", "2 high school", "3 some college", "4 bachelor", "5 graduate")
SEEDS = range(5)
SIZES = (10_000, 8_000, 8_000)  # training, validation and test rows, of 332,900
PARITY = tuple(("demographic_parity", bound) for bound in (0.1, 0.05, 0.03))
TARGETS = dict.fromkeys(("sex", "race"), (*PARITY, ("equalized_odds", 0.1)))
METHODS = ("plain", "offsets", "alignment", "smoothing", "FTM", "FTM with offsets")
WEIGHTS = (0.0, 0.1, 0.3, 0.7, 1.5, 3.0, 6.0, 12.0, 25.0, 50.0)
SMOOTHING = (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
GOAL = 0.003  # how much accuracy the program may promise beyond what is reached
# FTM with this weight closes part of the gap, and offsets close the rest.
_BEFORE_OFFSETS = 0.3


def tables(groups: str, seed: int) -> list[tuple[Any, Any, Any]]:
    """Return features, levels and groups of training, validation and test rows."""
    data = load_acsincome(sensitive=groups)
    X = data.X.drop(columns=["schooling", "race", "sex"], errors="ignore")
    # Codes of SCHL: 16 and 17 are a diploma or its equivalent, 18 to 20 college without a
    # bachelor's degree, 21 a bachelor's degree.
    place = np.searchsorted([16, 18, 21, 22], data.X["schooling"].to_numpy(), side="right")
    group = data.sensitive_features.astype(str)
    rows = np.flatnonzero(group.isin(group.value_counts().index[:5]))
    rows = np.random.default_rng([seed, 30]).choice(rows, sum(SIZES), replace=False)
    parts = np.split(rows, np.cumsum(SIZES)[:-1])
    y, group = np.array(LEVELS)[place], group.to_numpy()
    return [(X.iloc[own].reset_index(drop=True), y[own], group[own]) for own in parts]


def run(groups: str, seed: int) -> dict[str, Any]:
    """Return the record of one split: every method and target."""
    (X, y, group), (X_val, y_val, group_val), (X_test, y_test, group_test) = tables(groups, seed)
    trees = LGBMClassifier(n_estimators=30, num_leaves=7, n_jobs=1, verbose=-1)
    train, test = {"sensitive_features": group}, {"sensitive_features": group_test}
    started = time.process_time()
    plain = FTMBoostingClassifier(trees, fairness_weight=0.0, random_state=seed).fit(X, y, **train)
    seconds = time.process_time() - started
    chances = plain.predict_proba(X_test, **test)
    found: dict[str, Any] = {"groups": groups, "seed": seed, "plain_seconds": seconds, "rows": []}

    def note(method: str, criterion: str, bound: float, scores: Any, **more: Any) -> None:
        decided = largest_class(scores)
        found["rows"].append(
            {
                "method": method, "criterion": criterion, "bound": bound,
                "accuracy": float(np.mean(plain.classes_[decided] == y_test)),
                # As the program counts: by the plain probabilities instead of the labels.
                "expected": float(np.take_along_axis(chances, decided[:, None], 1).mean()),
                "demographic_parity_gap": demographic_parity_gap(None, scores, **test),
                "equalized_odds_gap": equalized_odds_gap(y_test, scores, **test),
                **more,
            }
        )  # fmt: skip

    def adjusted(model: Any, criterion: str, bound: float, decisions: str) -> Any:
        known = model.predict_proba(X_val, sensitive_features=group_val)
        one = fit_adjustment(
            known, group_val, max_gap=bound, criterion=criterion, decisions=decisions
        )
        return one.apply(model.predict_proba(X_test, **test), group_test)

    for criterion, bound in TARGETS[groups]:
        note("plain", criterion, bound, chances)
        best = fit_adjustment(chances, group_test, max_gap=bound, criterion=criterion,
                              decisions="threshold")  # fmt: skip
        note("promised", criterion, bound, best.apply(chances, group_test),
             promised=best.parts.promised[0])  # fmt: skip
        note("offsets", criterion, bound, adjusted(plain, criterion, bound, "threshold"))
        if criterion == "demographic_parity":
            note("alignment", criterion, bound, adjusted(plain, criterion, bound, "align"))
    for criterion in dict.fromkeys(name for name, _ in TARGETS[groups]):
        own: dict[str, Any] = {"criterion": criterion, "random_state": seed}
        gap = read_criterion(criterion).gap_measure
        for method, estimator, weights in (
            ("FTM", FTMBoostingClassifier(trees, **own), WEIGHTS),
            ("smoothing", MatchSmoothingClassifier(trees, **own), SMOOTHING),
        ):
            started = time.process_time()
            path = fairness_path(X, y, fairness_weights=list(weights), estimator=estimator, **train)
            seconds = time.process_time() - started
            curve = path.curve(X_val, y_val, sensitive_features=group_val)
            for name, bound in TARGETS[groups]:
                if name != criterion:
                    continue
                within = curve[curve[gap] <= bound]
                kept = within["accuracy"].idxmax() if len(within) else curve[gap].idxmin()
                scores = path.models[kept].predict_proba(X_test, **test)
                note(method, name, bound, scores, seconds=seconds, weight=weights[kept])
                if method == "FTM":
                    some = path.models[weights.index(_BEFORE_OFFSETS)]
                    note("FTM with offsets", name, bound, adjusted(some, name, bound, "threshold"))
    return found


def costs(groups: str, seed: int) -> dict[str, float]:
    """Return the CPU time of every method at ΔDP 0.05, divided by that of plain trees."""
    (X, y, group), (X_val, _, group_val), _ = tables(groups, seed)
    trees = LGBMClassifier(n_estimators=30, num_leaves=7, n_jobs=1, verbose=-1)

    def trained(weight: float) -> tuple[Any, float]:
        started = time.process_time()
        model = FTMBoostingClassifier(trees, fairness_weight=weight, random_state=seed)
        model.fit(X, y, sensitive_features=group)
        return model, time.process_time() - started

    def adjusted(model: Any, decisions: str) -> float:
        started = time.process_time()
        known = model.predict_proba(X_val, sensitive_features=group_val)
        fit_adjustment(known, group_val, max_gap=0.05, decisions=decisions)
        return time.process_time() - started

    trained(0.0)  # what only the first fit of a program pays
    (plain, once), (fair, ours) = trained(0.0), trained(_BEFORE_OFFSETS)
    found = {
        "offsets": once + adjusted(plain, "threshold"),
        "alignment": once + adjusted(plain, "align"),
        "FTM with offsets": ours + adjusted(fair, "threshold"),
    }
    return {method: seconds / once for method, seconds in found.items()}


def main() -> None:
    """Make the records that are missing, and write the page."""
    folder = RESULTS / "classes"
    folder.mkdir(parents=True, exist_ok=True)
    asked = [int(own) for own in sys.argv[1:]] or SEEDS
    wanted = {f"acsincome-{groups}-seed{seed}.json": (run, groups, seed)
              for seed in asked for groups in TARGETS}  # fmt: skip
    wanted |= {f"costs-{groups}.json": (costs, groups, 0) for groups in TARGETS}
    for name, (make, groups, seed) in wanted.items():
        if not (folder / name).exists():
            text = json.dumps(make(groups, seed), indent=1) + "\n"
            (folder / name).write_text(text, encoding="utf-8")
            print(name, flush=True)
    write_page(folder)


def write_page(folder: Path) -> None:
    """Write the page from the records: its words are a template beside this module."""
    records = [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("acsincome-*"))]
    rows = pd.DataFrame([
        {**row, "groups": one["groups"], "seed": one["seed"], "plain": one["plain_seconds"]}
        for one in records for row in one["rows"]
    ])  # fmt: skip
    gaps = [row[read_criterion(row["criterion"]).gap_measure] for _, row in rows.iterrows()]
    rows["gap"], rows["kept"] = gaps, gaps <= rows["bound"]
    target = ["groups", "seed", "criterion", "bound"]
    promised = rows[rows["method"] == "promised"].set_index(target)["promised"]
    rows["loss"] = promised[pd.MultiIndex.from_frame(rows[target])].to_numpy() - rows["expected"]
    rows["ratio"] = rows["seconds"] / rows["plain"]
    worst = rows.groupby("method")["loss"].max()
    reached = worst[["offsets", "FTM with offsets"]]
    page = page_of(
        "classes",
        sizes=[f"{size:,}" for size in SIZES],
        goal=GOAL,
        reached=reached,
        met=reached.max() <= GOAL,
        missed={groups: _missed(rows[rows["groups"] == groups]) for groups in TARGETS},
        odds=rows.query("groups == 'race' and method == 'promised'")
        .query("criterion == 'equalized_odds'")["gap"].mean(),
        n_weights={"FTM": len(WEIGHTS), "smoothing": len(SMOOTHING)},
        parts=[
            (groups, own["seed"].nunique(), own.groupby("method")["ratio"].mean(),
             json.loads((folder / f"costs-{groups}.json").read_text("utf-8")),
             [_part(own, *one) for one in TARGETS[groups]])
            for groups in TARGETS
            if len(own := rows[rows["groups"] == groups])
        ],
    )  # fmt: skip
    (RESULTS / "classes.md").write_text(page, encoding="utf-8")


def _part(rows: pd.DataFrame, criterion: str, bound: float) -> tuple[str, float, float, str]:
    """Return symbol, bound and promise of a target, and the table of its methods."""
    own = rows[(rows["criterion"] == criterion) & (rows["bound"] == bound)]
    lines = [
        [method, *(f"{some[key].mean():.4f}" for key in ("expected", "accuracy", "gap")),
         f"{some['gap'].max():.4f}", f"{some['kept'].sum()} of {len(some)}"]
        for method in METHODS if len(some := own[own["method"] == method])
    ]  # fmt: skip
    names = ["method", "expected", "accuracy", "gap", "largest gap", "kept"]
    symbol = MEASURES[read_criterion(criterion).gap_measure].symbol
    return symbol, bound, own["promised"].mean(), table(names, lines)


def _missed(rows: pd.DataFrame) -> str:
    """Return on how many splits offsets miss the bounds, in words."""
    own = rows[rows["method"] == "offsets"]
    found = (~own["kept"].astype(bool)).groupby([own["criterion"], own["bound"]]).sum()
    span = f"{found.min()} to {found.max()}" if found.nunique() > 1 else str(found.iloc[0])
    return f"{span} of {own['seed'].nunique()}"


if __name__ == "__main__":
    main()
