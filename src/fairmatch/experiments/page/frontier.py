"""Which method suits which purpose: the frontier of accuracy, consistency and subset gaps."""

from collections.abc import Iterator, Mapping

from fairmatch.experiments.page.markdown import mean_cell, table
from fairmatch.experiments.reading.answers import Answers
from fairmatch.experiments.reading.levels import Reading
from fairmatch.experiments.reading.questions import SUBJECTS, questions

TITLE = "Which method"
LARGEST = "half-spaces: largest"

# What is compared at equal gap: the words for the best, and 1 if more is better or -1 if less is.
_ASKED = {
    "accuracy": ("most accurate", 1),
    "consistency": ("most consistent", 1),
    LARGEST: ("fairest in its worst half-space", -1),
}

Found = dict[tuple[str, float], dict[str, dict[str, Reading]]]


def frontier_section(answers: Answers, picture: str = "") -> str:
    """Return the section with its picture, or an empty text where no trees are recorded."""
    found = read_frontier(answers)
    if not found:
        return ""
    told = (
        f"## {TITLE}\n\nBoosted trees at the paper's levels of ΔDP, interpolated; in bold the best "
        "of a column among methods that come to the level on at least half of the splits. "
        "Consistency is the share of people whose decision stays when only their group is "
        "changed. The last column is the largest gap of mean scores in 1,000 random half-spaces. "
        "Splits differ, so a small difference between methods with other numbers of splits, which "
        "stand in brackets, says nothing."
    )
    parts = [told, picture, _winners(answers, found), _ADVICE, *_tables(answers, found)]
    return "\n\n".join(part for part in parts if part)


_ADVICE = (
    "What to take. If accuracy at a gap of decisions is all that counts, and the group may be used "
    "to decide, adjust the scores of the model that you have: thresholds by group or quantile "
    "alignment. They move people of one group as a whole, so who is alike does not matter to them. "
    "If people who are alike should be treated alike, take FTM with the marginal map, and pay for "
    "it with accuracy. Match smoothing and the predicted map lie between the two. Where the group "
    "must not be used to decide, scores cannot be adjusted by group; FTM, match smoothing and Reg "
    "can do without it (`sensitive_at_prediction=False`)."
)


def read_frontier(answers: Answers) -> Found:
    """Return what trees reach at the paper's levels of ΔDP.

    The keys are table and level, then the line, then the quantity.
    """
    found: Found = {}
    for question in questions():
        asked = question.experiment == "trees" and question.quantity in _ASKED
        if not asked or question.dataset not in answers.study.datasets:
            continue
        by_line = found.setdefault((question.dataset, question.level), {})
        for answer in answers.answer(question):
            if answer.series.key in SUBJECTS["trees"]:
                own = by_line.setdefault(answer.series.key, {})
                own[question.quantity] = answer.interpolated
    return {where: by_line for where, by_line in found.items() if by_line}


def _best(by_line: Mapping[str, Mapping[str, Reading]], quantity: str) -> str | None:
    """Return the line that is best in a quantity, among those that come to the level."""
    stated = {key: own[quantity] for key, own in by_line.items() if own[quantity].stated}
    sign = _ASKED[quantity][1]
    return max(stated, key=lambda key: sign * stated[key].mean, default=None)


def _tables(answers: Answers, found: Found) -> Iterator[str]:
    for (dataset, level), by_line in found.items():
        best = {quantity: _best(by_line, quantity) for quantity in _ASKED}
        rows = []
        for key, own in by_line.items():
            cells = [mean_cell(own[quantity]) for quantity in _ASKED]
            marked = [
                f"**{cell}**" if best[quantity] == key else cell
                for cell, quantity in zip(cells, _ASKED, strict=True)
            ]
            rows.append([answers.study.series[key].label, *marked])
        names = ["method", "accuracy", "consistency", "largest gap of half-spaces"]
        yield f"**{dataset}, ΔDP = {level:g}**\n\n{table(names, rows)}"


def _winners(answers: Answers, found: Found) -> str:
    """Return a list of the best method for each table, level and quantity."""
    lines = []
    for (dataset, level), by_line in found.items():
        parts = [
            f"{words} is {answers.study.series[key].label.removeprefix('trees: ')}"
            for quantity, (words, _) in _ASKED.items()
            if (key := _best(by_line, quantity)) is not None
        ]
        if parts:
            lines.append(f"- {dataset} at {level:g}: {'; '.join(parts)}.")
    return "\n".join(lines)
