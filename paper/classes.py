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


def _value(row: dict[str, Any]) -> float:
    """Return the gap that the bound of a row is about."""
    return float(row[read_criterion(row["criterion"]).gap_measure])


def write_page(folder: Path) -> None:
    """Write the page from the records."""
    files = sorted(folder.glob("acsincome-*.json"))
    records = [json.loads(file.read_text("utf-8")) for file in files]
    promised = {
        (record["groups"], record["seed"], row["criterion"], row["bound"]): row["promised"]
        for record in records for row in record["rows"] if "promised" in row
    }  # fmt: skip
    for record in records:
        for row in record["rows"]:
            target = record["groups"], record["seed"], row["criterion"], row["bound"]
            row["loss"] = promised[target] - row["expected"]

    def worst(method: str) -> float:
        return max(row["loss"] for one in records for row in one["rows"] if row["method"] == method)

    odds = np.mean([
        _value(row) for one in records if one["groups"] == "race" for row in one["rows"]
        if (row["method"], row["criterion"]) == ("promised", "equalized_odds")
    ])  # fmt: skip
    reached = {method: worst(method) for method in ("offsets", "FTM with offsets")}
    lines = [
        "# Several classes: education in five levels",
        "",
        f"ACSIncome with {SIZES[0]:,} training, {SIZES[1]:,} validation and {SIZES[2]:,} test rows",
        "per seed. Education in five levels (below high school, high school, some college,",
        "bachelor, graduate) is predicted from age, hours, marital status, relationship, class of",
        "worker, occupation and place of birth. `python -m paper.classes` makes the records in",
        "`results/classes/` and this page.",
        "",
        "*Accuracy* and *gap* are measured with the labels of the test rows, as means over the",
        "seeds. *Expected* is the accuracy that the plain probabilities predict, which the linear",
        "program maximises. *Promised* is the best expected accuracy within the bound, if the",
        "program could be solved on the test rows, which no method sees. *Kept* is the number of",
        "splits on which the gap of the test rows is within the bound, and *largest gap* is that",
        "of the worst split.",
        "",
        f"**The goal** was an expected accuracy within {GOAL} of the promised one, for offsets and",
        "for FTM with offsets. On the worst split of any target, offsets are "
        f"{reached['offsets']:.4f} below it",
        f"and FTM with offsets {reached['FTM with offsets']:.4f}, so the goal is "
        f"{'met' if max(reached.values()) <= GOAL else 'not met'}. The goal says nothing",
        "about the bound.",
        "",
        "**The bounds are not guaranteed on new rows.** Offsets keep a bound on the rows that they",
        "are fitted on.",
        *(_missed(records, groups) for groups in TARGETS),
        "For equalised odds, the rates in the program are those that the plain probabilities",
        f"expect. By race, even the optimum on the test rows has a ΔEO of {odds:.3f} with their",
        "labels, where the bound is 0.1.",
        "Small races have few validation rows, and the largest of many noisy gaps is too large by",
        "chance. If the gap of new people must be within a bound, fit to a smaller bound and",
        "measure the gap with its interval on rows that were not used in the fit (`gap_table`",
        "with `confidence=`, or `audit`). Use more validation rows, or pool small groups with",
        "`small_groups=`.",
        "",
        "FTM and smoothing use the most accurate weight of their path that keeps the bound on the",
        "validation rows. If none keeps it, they use the weight with the least gap there, so the",
        "rows of several bounds can be equal. That is so by race, for FTM at all three bounds.",
        "Penalties lower differences of scores; to lower the largest of many differences of",
        "decisions, add offsets.",
        "",
        "The numbers of rows and the validation rows for the offsets were chosen after a first run",
        "of seed 0, so seed 0 is not an unseen split. The size of the trees was chosen on",
        "validation rows of seeds 10 and 11. Trees with 15 leaves and 60 rounds are overconfident:",
        "their probabilities predict an accuracy of 0.518, but it is 0.454. With such",
        "probabilities, the expected accuracy of other models is too low: that of FTM with offsets",
        "was 0.005 below the promise. With 7 leaves and 30 rounds, 0.465 is predicted and 0.455",
        "is reached.",
        "",
    ]
    for groups, targets in TARGETS.items():
        own = [record for record in records if record["groups"] == groups]
        if not own:
            continue
        ratios = {
            method: np.mean([row["seconds"] / record["plain_seconds"] for record in own
                             for row in record["rows"] if row["method"] == method])
            for method in ("FTM", "smoothing")
        }  # fmt: skip
        once = json.loads((folder / f"costs-{groups}.json").read_text("utf-8"))
        lines += [
            f"## Groups by {groups}, {len(own)} {'seed' if len(own) == 1 else 'seeds'}",
            "",
            f"The whole path of FTM, {len(WEIGHTS)} weights, takes {ratios['FTM']:.1f} times the",
            f"CPU time of plain trees, and that of smoothing, {len(SMOOTHING)} weights, "
            f"{ratios['smoothing']:.1f} times.",
            f"Plain trees with offsets for ΔDP 0.05 take {once['offsets']:.1f} times, with",
            f"alignment {once['alignment']:.1f} times, and one FTM model with offsets "
            f"{once['FTM with offsets']:.1f} times (one run of seed 0).",
            "",
        ]
        for criterion, bound in targets:
            gap = read_criterion(criterion).gap_measure
            rows = [row for record in own for row in record["rows"]
                    if (row["criterion"], row["bound"]) == (criterion, bound)]  # fmt: skip
            best = np.mean([row["promised"] for row in rows if "promised" in row])
            lines += [
                f"{MEASURES[gap].symbol} at most {bound:g}. Promised: {best:.4f}.",
                "",
                "| method | expected | accuracy | gap | largest gap | kept |",
                "|---|---|---|---|---|---|",
            ]
            for method in METHODS:
                some = [row for row in rows if row["method"] == method]
                if some:
                    mean = [np.mean([row[key] for row in some])
                            for key in ("expected", "accuracy", gap)]  # fmt: skip
                    gaps = [_value(row) for row in some]
                    kept = sum(one <= bound for one in gaps)
                    lines.append(
                        f"| {method} | {mean[0]:.4f} | {mean[1]:.4f} | {mean[2]:.4f} | "
                        f"{max(gaps):.4f} | {kept} of {len(some)} |"
                    )
            lines.append("")
    (RESULTS / "classes.md").write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def _missed(records: list[dict[str, Any]], groups: str) -> str:
    """Return on how many splits offsets miss the bounds, in words."""
    found = [
        sum(_value(row) > bound for record in records if record["groups"] == groups
            for row in record["rows"]
            if (row["method"], row["criterion"], row["bound"]) == ("offsets", criterion, bound))
        for criterion, bound in TARGETS[groups]
    ]  # fmt: skip
    n_seeds = len({record["seed"] for record in records if record["groups"] == groups})
    span = f"{min(found)} to {max(found)}" if len(set(found)) > 1 else str(found[0])
    return f"By {groups}, they miss it on {span} of {n_seeds} test splits at each target."


if __name__ == "__main__":
    main()
