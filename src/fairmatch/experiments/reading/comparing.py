"""FTM beside the paper's rivals: which is better where, and the grade of a claim."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fairmatch.experiments.lines import PAPER_RIVALS
from fairmatch.experiments.reading.answers import Answer, Answers
from fairmatch.experiments.reading.levels import Reading
from fairmatch.experiments.reading.questions import Question, questions

HOLDS, IN_PART, DOES_NOT, UNKNOWN = "holds", "holds in part", "does not hold", "not recorded"

Judgement = tuple[str, str]


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


def asked_of(answers: Answers, experiment: str, **fields: object) -> Iterator[Question]:
    """Yield an experiment's questions about the tables of a study; `fields` must be equal."""
    for question in questions():
        if (
            question.experiment == experiment
            and question.dataset in answers.study.datasets
            and all(getattr(question, name) == value for name, value in fields.items())
        ):
            yield question


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
    """Return a grade and a sentence on the cells where fewer than `places` rivals beat FTM.

    A cell is compared only if FTM comes to the level, and a rival does on the same splits.

    Parameters
    ----------
    answers : Answers
        The answers that the records hold.
    asked : iterable of Question
        The questions, one for each cell.
    grade : callable
        Takes the number of cells won and of cells compared; returns the grade.
    places : int, default=1
        FTM wins a cell if fewer rivals than this are better.
    """
    cells = fill_cells(answers, asked)
    held, close, compared = 0, 0, []
    told: dict[str, list[str]] = {}
    for cell in cells:
        leads, mine = cell.leads(), cell.ftm.interpolated
        better = {label: lead for label, lead in leads.items() if lead.mean > 0.0}
        if leads and mine.stated:
            compared.append(mine)
            won = len(better) < places
            held += won
            clearly = [lead for lead in better.values() if not lead.mean <= 2.0 * lead.error]
            close += not won and len(clearly) < places
            beside = _listed({label: lead.mean for label, lead in better.items()}, cell.question)
        else:
            beside = " (no rival there)" if mine.stated else ""
        told.setdefault(f"{cell.question.dataset} at {cell.question.level:g}", []).append(
            f"{cell.question.label} {_shown(cell.question, mine)}{beside}"
        )
    rank = "best" if places == 1 else "best or second"
    counts = f"FTM is {rank} in {held} of {len(compared)}"
    if len(compared) < len(cells):
        counts += f" that can be compared, of {len(cells)}"
    if close:
        counts += f", within two standard errors of it in {close} more"
    listed = ". ".join(f"{place}: {'; '.join(values)}" for place, values in told.items())
    return grade(held, len(compared)), f"{counts} ({count_splits(compared)}). {listed}."


def _listed(better: dict[str, float], question: Question) -> str:
    """Return the rivals that are better, and by how much, in brackets."""
    named = [f"{label} by {value:.{question.digits}f}" for label, value in better.items()]
    return f" ({', '.join(named)})" if named else ""


def _shown(question: Question, reading: Reading) -> str:
    if not reading.stated:
        return "not reached"
    return f"{reading.mean:.{question.digits}f}"


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
