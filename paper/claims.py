"""The claims of the paper, checked against the records."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairmatch.datasets import PAPER_DATASETS
from paper.questions import GAPS, Answer, Answers, Question, reported
from paper.readings import Reading, interpolated, least_gap
from paper.specs import PAPER_RIVALS

HOLDS, IN_PART, DOES_NOT, UNKNOWN = "holds", "holds in part", "does not hold", "not recorded"


class Judgement(NamedTuple):
    """Whether a claim holds, where it does, the figure that decides, and all numbers behind it."""

    state: str
    where: str = ""
    figure: str = ""
    details: str = ""


def shares_held(cases: Iterable[tuple[str, bool]]) -> str:
    """Return the places where at least one of their cases holds, with the share that does."""
    held: dict[str, list[bool]] = {}
    for place, holds in cases:
        held.setdefault(place, []).append(holds)
    told = (
        place if all(own) else f"{place} ({sum(own)} of {len(own)})"
        for place, own in held.items()
        if any(own)
    )
    return ", ".join(told) or "nowhere"


def graded(n_held: int, n_all: int) -> str:
    """Return the grade of a claim that holds in all cases, in some, or in none."""
    if n_all == 0:
        return UNKNOWN
    if n_held == n_all:
        return HOLDS
    return IN_PART if n_held else DOES_NOT


def graded_by_majority(n_held: int, n_all: int) -> str:
    """Return the grade of a claim about most cases: it holds in more than half, or does not."""
    if n_all == 0:
        return UNKNOWN
    return HOLDS if 2 * n_held > n_all else DOES_NOT


@dataclass(frozen=True)
class Cell:
    """FTM and the paper's rivals in one column of a table."""

    question: Question
    ftm: Answer
    rivals: tuple[Answer, ...]

    def leads(self) -> dict[str, Reading]:
        """Return how much better each rival is, on the splits where both come to the level.

        Rivals that share fewer than half of the splits with FTM are left out.
        """
        mine, sign = self.ftm.interpolated, self.question.better
        both = {rival.series.label: rival.interpolated.less(mine) for rival in self.rivals}
        return {
            label: Reading({k: sign * v for k, v in lead.by_seed.items()}, lead.reached, lead.n)
            for label, lead in both.items()
            if 2 * lead.n >= mine.n_seeds
        }


def fill_cells(answers: Answers, asked: Iterable[Question]) -> list[Cell]:
    """Return the cells for which FTM and all of the paper's rivals are recorded."""
    cells = []
    for question in asked:
        found = {answer.series.key: answer for answer in answers.answer(question)}
        if {*PAPER_RIVALS, "ftm-batch"} <= found.keys():
            rivals = tuple(found[key] for key in PAPER_RIVALS)
            cells.append(Cell(question, found["ftm-batch"], rivals))
    return cells


def count_wins(
    answers: Answers,
    asked: Iterable[Question],
    *,
    grade: Callable[[int, int], str] = graded,
    places: int = 1,
) -> Judgement:
    """Judge by the cells where fewer than `places` rivals beat FTM.

    A cell is compared only if FTM comes to the level, and a rival does on the same splits. `grade`
    takes the number of cells won and of cells compared.
    """
    cells = fill_cells(answers, asked)
    held, close, compared = [], 0, []
    told: dict[str, list[str]] = {}
    for cell in cells:
        leads, mine, digits = cell.leads(), cell.ftm.interpolated, cell.question.digits
        better = {label: lead for label, lead in leads.items() if lead.mean > 0.0}
        if leads and mine.stated:
            compared.append(mine)
            won = len(better) < places
            held.append((cell.question.dataset, won))
            clearly = [lead for lead in better.values() if not lead.mean <= 2.0 * lead.error]
            close += not won and len(clearly) < places
            named = [f"{label} by {lead.mean:.{digits}f}" for label, lead in better.items()]
            beside = f" ({', '.join(named)})" if named else ""
        else:
            beside = " (no rival there)" if mine.stated else ""
        shown = f"{mine.mean:.{digits}f}" if mine.stated else "not reached"
        where = f"{cell.question.dataset} at {cell.question.level:g}"
        told.setdefault(where, []).append(f"{cell.question.label} {shown}{beside}")
    rank = "best" if places == 1 else "best or second"
    n_held = sum(won for _, won in held)
    counts = f"FTM is {rank} in {n_held} of {len(compared)} comparisons"
    if len(compared) < len(cells):
        counts += f" ({len(cells) - len(compared)} more are not possible)"
    if close:
        others = "one other" if close == 1 else f"{close} others"
        counts += f", and misses by at most two standard errors in {others}"
    listed = ". ".join(f"{place}: {'; '.join(values)}" for place, values in told.items())
    counts += f" ({count_splits(compared)})"
    return Judgement(grade(n_held, len(compared)), shares_held(held), counts, f"{listed}.")


def count_splits(found: Iterable[Reading]) -> str:
    """Return in words how many splits the readings rest on."""
    counts = sorted({reading.n for reading in found if reading.n})
    if not counts:
        return "no split"
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} splits"
    return "one split" if counts[0] == 1 else f"{counts[0]} splits"


def show_change(reading: Reading) -> str:
    """Return a mean difference in words, with its standard error and its splits."""
    if not reading.stated:
        return f"not compared ({count_splits([reading])} in common)"
    error = f" ± {reading.error:.4f}" if reading.n > 1 else ""
    return f"{reading.mean:+.4f}{error} ({count_splits([reading])})"


# The differences of accuracy that count as "competitive" and as "almost nothing".
COMPETITIVE, ALMOST = 0.01, 0.002
# A gap that counts as none.
ANY_LEVEL = 0.005
# A method counts as stable if its standard deviation is at most this many times the rivals'. Five
# splits determine a standard deviation to about a third.
AS_STABLE = 2.0


Judge: TypeAlias = Callable[[Answers], Judgement]


@dataclass(frozen=True)
class Verdict:
    """The paper's claim in other words, and what the records say of it."""

    claim: str
    found: Judgement

    @property
    def numbers(self) -> str:
        """All numbers behind the verdict, the one that decides first; empty without records."""
        if self.found.state == UNKNOWN:
            return ""
        return f"{self.found.figure}. {self.found.details}"


def verdicts(answers: Answers) -> list[Verdict]:
    """Return the verdict on every claim of the paper."""
    found = []
    for claim, (judge, tables) in zip(reported()["claims"], _JUDGES, strict=True):
        one = judge(answers)
        seen = [name for name in tables if name in answers.study.datasets]
        if one.state == HOLDS and len(seen) < len(tables):
            alone = f"{one.details} Looked at on {', '.join(seen)} alone."
            one = one._replace(state=IN_PART, details=alone)
        found.append(Verdict(claim, one))
    return found


def _competitive(answers: Answers) -> Judgement:
    told, n_tables, competitive, n_any = [], 0, [], 0
    for dataset, asked in groupby(answers.asked("tradeoff"), key=lambda question: question.dataset):
        cells = fill_cells(answers, asked)
        compared = [found for cell in cells if (found := cell.leads())]
        leads = [lead.mean for found in compared for lead in found.values()]
        if not leads:
            continue
        smallest = least_gap(answers.records("ftm-batch", dataset), GAPS["WDP"]).mean
        n_tables += 1
        competitive += [dataset] if max(leads) <= COMPETITIVE else []
        n_any += smallest <= ANY_LEVEL
        told.append(
            f"{dataset}: accuracy minus a rival's {-max(leads):+.4f} to {-min(leads):+.4f} at "
            f"{len(compared)} of {len(cells)} levels, least ΔWDP {smallest:.3f}"
        )
    counts = (
        f"Competitive on {len(competitive)} of {n_tables} tables; reaches a ΔWDP of "
        f"{ANY_LEVEL:g} on {n_any} of {n_tables}"
    )
    limit = (
        f"Competitive means an accuracy at most {COMPETITIVE:g} below that of every rival at every "
        f"level. Any level means a ΔWDP of at most {ANY_LEVEL:g}, by a model that accepts some "
        "people and rejects others"
    )
    state = graded(len(competitive) + n_any, 2 * n_tables)
    where = f"accuracy: {', '.join(competitive) or 'nowhere'}"
    return Judgement(state, where, counts, f"{limit}. {'; '.join(told)}.")


def _german(answers: Answers) -> Judgement:
    best = count_wins(answers, answers.asked("tradeoff", dataset="german"))
    records = answers.records("reduction", "german")
    if best.state == UNKNOWN:
        return best
    by_scores, by_decisions = (least_gap(records, GAPS[name]).mean for name in ("WDP", "DP"))
    state = graded((best.state == HOLDS) + (by_scores > 0.06), 2)
    if state == DOES_NOT and best.state == IN_PART:
        state = IN_PART
    least = f"least ΔWDP of Reduction is {by_scores:.3f}, its least ΔDP {by_decisions:.3f}"
    details = f"{best.details} The {least} (means over the splits)."
    return best._replace(state=state, details=details)


def _outliers(answers: Answers) -> Judgement:
    every = count_wins(answers, answers.asked("subsets", label="outliers"))
    above = count_wins(answers, answers.asked("subsets", label="outliers above the box"))
    alone = f" Counting only outliers above the box: {above.figure}. {above.details}"
    return every._replace(details=every.details + alone)


def _joint_map(answers: Answers) -> Judgement:
    held, told = [], []
    for question in answers.asked("joint"):
        if question.quantity not in ("accuracy", "equalized_odds_gap"):
            continue
        found = {answer.series.key: answer.interpolated for answer in answers.answer(question)}
        for plain, joint, name in (
            ("ftm-batch", "ftm-batch-joint", "mini-batch"),
            ("ftm", "ftm-joint", "all rows"),
        ):
            if plain not in found or joint not in found:
                continue
            gain = found[joint].less(found[plain])
            if gain.stated:
                held.append((question.label, question.better * gain.mean > 0.0))
            told.append(f"{question.label} at {question.level:g}, {name}: {show_change(gain)}")
    n_held = sum(better for _, better in held)
    counts = f"The joint map is better in {n_held} of {len(held)} comparisons"
    details = f"Joint minus marginal: {'; '.join(told)}."
    return Judgement(graded(n_held, len(held)), shares_held(held), counts, details)


def _at_label_weights(answers: Answers, level: float, quantity: str) -> dict[float, Reading]:
    """Read a quantity at a level for every label weight, on all rows."""
    start = answers.records("unfair", "adult")
    found = {
        float(value): interpolated(
            answers.of_label_weight("ftm", value), GAPS["DP"], level, quantity, start=start
        )
        for value in answers.study.profile.label_weights
    }
    return {value: reading for value, reading in found.items() if reading.stated}


def _saturation(answers: Answers) -> Judgement:
    changes: dict[float, float] = {}
    compared = []
    for level in reported()["transport_cost_vs_accuracy_adult"]["at_DP"]:
        found = _at_label_weights(answers, level, "accuracy")
        for value in found.keys() - {0.0, 100.0} if 100.0 in found else ():
            change = found[value].less(found[100.0])
            if change.stated:
                changes[value] = max(changes.get(value, 0.0), abs(change.mean))
                compared.append(change)
    above = [change for value, change in changes.items() if value > 100.0]
    below = {value: changes[value] for value in sorted(changes) if value < 100.0}
    if not above or not below:
        return Judgement(UNKNOWN)
    equal = [value for value, change in below.items() if change <= ALMOST]
    counts = f"Above 100 mean accuracy changes by at most {max(above):.4f}"
    counts += f", and α = {min(equal):g} already gives the same" if equal else ""
    told = "; ".join(f"α = {a:g} differs from 100 by at most {c:.4f}" for a, c in below.items())
    limit = f"all rows, {count_splits(compared)}; a change up to {ALMOST:g} counts as none"
    parts = [("above 100", max(above) <= ALMOST), ("below 100", not equal)]
    state = graded(sum(holds for _, holds in parts), 2)
    return Judgement(state, shares_held(parts), counts, f"{told} ({limit}).")


def _cost_trend(answers: Answers) -> Judgement:
    tight, loose = 0.025, 0.073
    # The whole curves of both maps are used, not only the weights common to all label weights.
    marginal, joint = (answers.records(key, "adult") for key in ("ftm", "ftm-joint"))
    start = answers.records("unfair", "adult")
    told, gains, rises = [], [], []
    for level in (tight, loose):
        gain, rise = (
            interpolated(joint, GAPS["DP"], level, quantity, start=start).less(
                interpolated(marginal, GAPS["DP"], level, quantity, start=start)
            )
            for quantity in ("accuracy", "transport_cost")
        )
        if not (gain.stated and rise.stated):
            return Judgement(UNKNOWN)
        told.append(
            f"at ΔDP {level:g} accuracy {show_change(gain)}, transport cost {show_change(rise)}"
        )
        gains.append(gain.mean)
        rises.append(rise.mean)
    rising = [("accuracy", gains[0] > ALMOST), ("cost", rises[0] > 0.0)]
    # No rise at the loose level says something only if something rises at the tight level.
    parts = [(f"{what} at {tight:g}", rises_there) for what, rises_there in rising]
    flat = any(holds for _, holds in parts) and gains[1] <= ALMOST
    parts.append((f"accuracy at {loose:g}", flat))
    state = graded(sum(holds for _, holds in parts), 3)
    limit = (
        f"changes of accuracy up to {ALMOST:g} are ignored, changes of cost are not; that accuracy "
        "stays the same at the larger gap counts only if something rises at the smaller gap"
    )
    counts = (
        f"From α = 0 to 100 accuracy changes by {gains[0]:+.4f} and cost by {rises[0]:+.4f} at ΔDP "
        f"{tight:g}; at {loose:g} accuracy changes by {gains[1]:+.4f}"
    )
    details = f"From α = 0 to 100, {'; '.join(told)} (all rows; {limit})."
    return Judgement(state, shares_held(parts), counts, details)


def _stability(answers: Answers) -> Judgement:
    cells = fill_cells(answers, answers.asked("imbalance"))
    if not cells:
        return Judgement(UNKNOWN)
    found = {a.series.label: a.interpolated for a in (cells[0].ftm, *cells[0].rivals)}
    spreads = {name: r.spread for name, r in found.items() if r.stated and r.n > 1}
    mine = spreads.pop(cells[0].ftm.series.label, None)
    if mine is None or not spreads:
        return Judgement(UNKNOWN)
    stable = bool(mine <= AS_STABLE * np.median(list(spreads.values())))
    told = ", ".join(f"{name} {value:.4f}" for name, value in spreads.items())
    rule = f"“as stable” means at most {AS_STABLE:g} times the rivals' median"
    splits = count_splits(found.values())
    counts = (
        f"The accuracy of FTM has a standard deviation of {mine:.4f}; that of its rivals is "
        f"{min(spreads.values()):.4f} to {max(spreads.values()):.4f}"
    )
    details = f"FTM {mine:.4f}, {told} ({splits}); {rule}."
    return Judgement(graded(stable, 1), shares_held([("adult", stable)]), counts, details)


def _representations(answers: Answers) -> Judgement:
    held, told = [], []
    for question in answers.asked("representation"):
        found = {answer.series.key: answer for answer in answers.answer(question)}
        for key in ("laftr", "sipm", "repair"):
            if key not in found or "ftm-batch" not in found:
                continue
            gain = found["ftm-batch"].interpolated.less(found[key].interpolated)
            if gain.stated:
                held.append((question.dataset, gain.mean > 0.0))
            told.append(f"{question.dataset} over {found[key].series.label} {show_change(gain)}")
    n_held = sum(better for _, better in held)
    counts = f"FTM is more accurate in {n_held} of {len(held)} comparisons"
    details = f"FTM's accuracy: {'; '.join(told)}."
    return Judgement(graded(n_held, len(held)), shares_held(held), counts, details)


def _counted(experiment: str, label: str | None = None, **how: Any) -> Judge:
    """Return a judge that counts the cells of an experiment in which FTM is ahead."""
    fields = {} if label is None else {"label": label}
    return lambda answers: count_wins(answers, answers.asked(experiment, **fields), **how)


_ALL = PAPER_DATASETS
_ADULT = ("adult",)

# A judge for each claim in reported.json, in their order, with the tables that the claim is about.
_JUDGES: Sequence[tuple[Judge, tuple[str, ...]]] = (
    (_competitive, _ALL),
    (_german, ("german",)),
    (_outliers, _ALL),
    (_counted("variables", places=2), ("german", "dutch")),
    (_joint_map, _ADULT),
    (_saturation, _ADULT),
    (_cost_trend, _ADULT),
    (_stability, _ADULT),
    (_counted("consistency", "consistency"), _ALL),
    (_representations, _ALL),
    (_counted("ranks", grade=graded_by_majority), _ALL),
    (_counted("flips", grade=graded_by_majority), _ALL),
)
