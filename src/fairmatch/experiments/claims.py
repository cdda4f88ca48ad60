"""Each claim of the paper held against the records: it holds, holds in part, or does not."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from fairmatch.experiments.answers import Answer, Answers, ranked
from fairmatch.experiments.levels import interpolated
from fairmatch.experiments.questions import GAPS, Question, questions, reported
from fairmatch.experiments.study import PAPER_RIVALS

HOLDS, IN_PART, DOES_NOT, UNKNOWN = "holds", "holds in part", "does not hold", "not recorded"

# What "competitive" and "almost nothing" are taken to mean, in accuracy.
COMPETITIVE, ALMOST = 0.01, 0.002
# A gap that is as good as none.
ANY_LEVEL = 0.005

_PAPER_LINES = (*PAPER_RIVALS, "ftm-batch")


@dataclass(frozen=True)
class Verdict:
    """A claim and what the records say of it.

    Attributes
    ----------
    claim : str
        In the paper's sense.
    state : str
        "holds", "holds in part", "does not hold" or "not recorded".
    numbers : str
        What that rests on.
    """

    claim: str
    state: str
    numbers: str


def verdicts(answers: Answers) -> list[Verdict]:
    """Hold every claim against the records."""
    claims = reported()["claims"]
    assert len(claims) == len(_JUDGES)
    found = []
    for claim, judge in zip(claims, _JUDGES, strict=True):
        state, numbers = judge(answers)
        found.append(Verdict(claim, state, "" if state == UNKNOWN else numbers))
    return found


Judgement = tuple[str, str]


def _graded(n_held: int, n_all: int, needed: int | None = None) -> str:
    """Grade a count: all (or as many as needed), some, none."""
    if n_all == 0:
        return UNKNOWN
    if n_held >= (n_all if needed is None else needed):
        return HOLDS
    return IN_PART if n_held else DOES_NOT


def _asked(answers: Answers, experiment: str, **fields: object) -> Iterator[Question]:
    for question in questions():
        if (
            question.experiment == experiment
            and question.dataset in answers.study.datasets
            and all(getattr(question, name) == value for name, value in fields.items())
        ):
            yield question


def _paper_answers(answers: Answers, question: Question) -> dict[str, Answer]:
    """Answer for the paper's own lines, if FTM and at least one rival are recorded."""
    found = {answer.series.key: answer for answer in answers.answer(question)}
    mine = {key: found[key] for key in question.lines if key in found and key in _PAPER_LINES}
    stated = {key: answer for key, answer in mine.items() if answer.best.n}
    return stated if "ftm-batch" in stated and len(stated) > 1 else {}


def _wins(
    answers: Answers, asked: Iterator[Question], *, needed: Callable[[int], int], places: int = 1
) -> Judgement:
    """Count the cells in which FTM is among the best of the paper's lines."""
    cells = [(question, _paper_answers(answers, question)) for question in asked]
    cells = [(question, found) for question, found in cells if found]
    held, close, at_nearest = 0, 0, 0
    told: dict[str, list[str]] = {}
    for question, found in cells:
        order = ranked(list(found.values()), question.better)
        best, mine = order[min(places, len(order)) - 1], found["ftm-batch"]
        won = question.better * (mine.best.mean - best.best.mean) >= 0.0
        held += won
        close += not won and _within_errors(mine, best)
        better = sum(
            question.better * (other.nearest.mean - mine.nearest.mean) > 0.0
            for other in found.values()
        )
        at_nearest += better < places
        told.setdefault(f"{question.dataset} at {question.level:g}", []).append(
            f"{question.label} {_shown(question, mine)}"
            + ("" if won else f" ({best.series.label} {_shown(question, best)})")
        )
    rank = "best" if places == 1 else "best or second (in brackets: the second)"
    counts = f"FTM is {rank} in {held} of {len(cells)}"
    if close:
        counts += f", within two standard errors of it in {close} more"
    counts += f"; at the nearest weights it is in {at_nearest}"
    splits = _splits(answer for _, found in cells for answer in found.values())
    listed = ". ".join(f"{place}: {'; '.join(values)}" for place, values in told.items())
    numbers = f"{counts} ({splits}). {listed}."
    return _graded(held, len(cells), needed(len(cells))), numbers


def _within_errors(one: Answer, other: Answer) -> bool:
    """Say whether two means differ by at most two standard errors of their difference."""
    error = np.hypot(one.best.error, other.best.error)
    return bool(abs(one.best.mean - other.best.mean) <= 2.0 * error)  # False where it is NaN


def _splits(found: Iterable[Answer]) -> str:
    counts = sorted({answer.best.n for answer in found})
    if not counts:
        return "no split"
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} splits"
    return "one split" if counts[0] == 1 else f"{counts[0]} splits"


def _shown(question: Question, answer: Answer) -> str:
    value = answer.best.mean
    counted = question.label.startswith(("outliers", "flips"))
    return f"{value:.1f}" if counted else f"{value:.4f}"


def _all(n_cells: int) -> int:
    return n_cells


def _most(n_cells: int) -> int:
    return n_cells // 2 + 1


def _competitive(answers: Answers) -> Judgement:
    told, held, n_all = [], 0, 0
    for dataset, asked in groupby(
        _asked(answers, "tradeoff"), key=lambda question: question.dataset
    ):
        records = answers.records("ftm-batch", dataset)
        differences = []
        for question in asked:
            found = _paper_answers(answers, question)
            rivals = [found[key].best.mean for key in PAPER_RIVALS if key in found]
            if found and rivals:
                differences.append(found["ftm-batch"].best.mean - max(rivals))
        if not differences or not records:
            continue
        smallest = np.mean([min(r.curve[GAPS["WDP"]]) for r in records.values()])
        n_all += 1
        held += min(differences) >= -COMPETITIVE and bool(smallest <= ANY_LEVEL)
        told.append(
            f"{dataset}: least ΔWDP {smallest:.3f}, accuracy less the best rival's "
            f"{min(differences):+.4f} to {max(differences):+.4f}"
        )
    limit = (
        f"competitive is taken as within {COMPETITIVE:g} at every level compared, any level as a "
        f"gap of at most {ANY_LEVEL:g}"
    )
    return _graded(held, n_all), f"{'; '.join(told)}; {limit}."


def _german(answers: Answers) -> Judgement:
    asked = list(_asked(answers, "tradeoff", dataset="german"))
    won, numbers = _wins(answers, iter(asked), needed=_all)
    records = answers.records("reduction", "german")
    if won == UNKNOWN or not records:
        return UNKNOWN, ""
    least = float(np.mean([min(r.curve[GAPS["DP"]]) for r in records.values()]))
    bounded = least > 0.06
    state = _graded((won == HOLDS) + bounded, 2)
    if state == DOES_NOT and won == IN_PART:
        state = IN_PART
    return state, f"{numbers} The least ΔDP of Reduction is {least:.3f} (mean over the splits)."


def _joint_map(answers: Answers) -> Judgement:
    held, n_all, told = 0, 0, []
    for question in _asked(answers, "joint"):
        if question.quantity not in ("accuracy", "equalized_odds_gap"):
            continue
        found = {answer.series.key: answer for answer in answers.answer(question)}
        for plain, joint, name in (
            ("ftm-batch", "ftm-batch-joint", "mini-batch"),
            ("ftm", "ftm-joint", "all rows"),
        ):
            if plain not in found or joint not in found:
                continue
            gain = found[joint].best.mean - found[plain].best.mean
            n_all += 1
            held += question.better * gain > 0.0
            told.append(f"{question.label} at {question.level:g}, {name}: {gain:+.4f}")
    return _graded(held, n_all), f"Joint less marginal: {'; '.join(told)}."


def _label_weight_readings(
    answers: Answers, level: float, quantity: str
) -> dict[float, tuple[float, int]]:
    found = {}
    for value in answers.study.profile.label_weights:
        records = answers.of_label_weight("ftm", value)
        reading = interpolated(
            records, GAPS["DP"], level, quantity, start=answers.records("unfair", "adult")
        )
        if reading.n:
            found[float(value)] = reading.mean, reading.n
    return found


def _saturation(answers: Answers) -> Judgement:
    changes, smaller = [], []
    for level in reported()["transport_cost_vs_accuracy_adult"]["at_DP"]:
        values = _label_weight_readings(answers, level, "accuracy")
        if 100.0 not in values:
            return UNKNOWN, ""
        own = values[100.0][0]
        changes += [abs(v - own) for alpha, (v, _) in values.items() if alpha > 100.0]
        smaller += [
            (alpha, abs(v - own)) for alpha, (v, _) in values.items() if 0.0 < alpha < 100.0
        ]
    if not changes or not smaller:
        return UNKNOWN, ""
    nothing = max(changes) <= ALMOST
    alike = {a: max(c for b, c in smaller if b == a) for a, _ in smaller}
    equal = [alpha for alpha, change in alike.items() if change <= ALMOST]
    told = f"Above 100 accuracy changes by at most {max(changes):.4f}. "
    told += "; ".join(f"α = {a:g} differs from 100 by at most {c:.4f}" for a, c in alike.items())
    return _graded(nothing + (not equal), 2), f"{told} (all rows, interpolated)."


def _cost_trend(answers: Answers) -> Judgement:
    told, held = [], []
    loose, tight = 0.073, 0.025
    for level in (tight, loose):
        accuracy = _label_weight_readings(answers, level, "accuracy")
        cost = _label_weight_readings(answers, level, "transport_cost")
        if not {0.0, 100.0} <= set(accuracy) & set(cost):
            return UNKNOWN, ""
        gain, rise = accuracy[100.0][0] - accuracy[0.0][0], cost[100.0][0] - cost[0.0][0]
        told.append(f"at ΔDP {level:g} accuracy {gain:+.4f}, transport cost {rise:+.3f}")
        if level == tight:
            held += [gain > ALMOST, rise > 0.0]
        else:
            held += [gain <= ALMOST]
    limit = f"a change of accuracy up to {ALMOST:g} counts as none"
    return _graded(sum(held), 3), f"From α = 0 to 100, {'; '.join(told)} (all rows; {limit})."


def _stability(answers: Answers) -> Judgement:
    question = next(_asked(answers, "imbalance"), None)
    found = {} if question is None else _paper_answers(answers, question)
    spreads = {key: answer.best.spread for key, answer in found.items()}
    stated = {key: value for key, value in spreads.items() if np.isfinite(value)}
    if "ftm-batch" not in stated or len(stated) < 2:
        return UNKNOWN, ""
    rivals = [value for key, value in stated.items() if key != "ftm-batch"]
    told = ", ".join(f"{found[key].series.label} {value:.4f}" for key, value in stated.items())
    held = sum(stated["ftm-batch"] <= value for value in rivals)
    numbers = f"Standard deviation of the accuracy, {_splits(found.values())}: {told}."
    return _graded(held, len(rivals)), numbers


def _representations(answers: Answers) -> Judgement:
    rivals = ("laftr", "sipm", "repair")
    held, n_all, told = 0, 0, []
    for question in _asked(answers, "representation"):
        found = {answer.series.key: answer for answer in answers.answer(question)}
        stated = {key: answer.best.mean for key, answer in found.items() if answer.best.n}
        if "ftm-batch" not in stated:
            continue
        for key in rivals:
            if key in stated:
                n_all += 1
                gain = stated["ftm-batch"] - stated[key]
                held += gain > 0.0
                splits = _splits((found[key], found["ftm-batch"]))
                told.append(
                    f"{question.dataset} over {found[key].series.label} {gain:+.4f} ({splits})"
                )
    return _graded(held, n_all), f"FTM's accuracy {'; '.join(told)}."


# In the order of the claims in reported.json.
_JUDGES: Sequence[Callable[[Answers], Judgement]] = (
    _competitive,
    _german,
    lambda answers: _wins(answers, _asked(answers, "subsets", label="outliers"), needed=_all),
    lambda answers: _wins(answers, _asked(answers, "variables"), needed=_all, places=2),
    _joint_map,
    _saturation,
    _cost_trend,
    _stability,
    lambda answers: _wins(
        answers, _asked(answers, "consistency", label="consistency"), needed=_all
    ),
    _representations,
    lambda answers: _wins(answers, _asked(answers, "ranks"), needed=_most),
    lambda answers: _wins(answers, _asked(answers, "flips"), needed=_most),
)
