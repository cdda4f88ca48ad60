"""The figures as files. Each holds hashes that show a check what it was drawn from."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from fairmatch.exceptions import InputError
from fairmatch.experiments.page.drawings import appendix_b_chart, counterfactual_chart
from fairmatch.experiments.page.figures import recorded_charts
from fairmatch.experiments.page.illustrations import appendix_b, counterfactuals
from fairmatch.experiments.reading.answers import Answers
from fairmatch.report.charts import require_charts
from fairmatch.storage.atomic import whole_file

ILLUSTRATIONS = ("appendix-b", "counterfactual")
"""Names of the figures that do not depend on the records."""


def draw_figures(answers: Answers, folder: str | Path) -> list[Path]:
    """Draw the illustrations and every figure that the records allow as SVG; return the files."""
    charts = _charts(answers)
    pictures = appendix_b_chart(appendix_b()), counterfactual_chart(counterfactuals())
    charts |= zip(ILLUSTRATIONS, pictures, strict=True)
    return [_save(chart, Path(folder) / f"{name}.svg") for name, chart in charts.items()]


def stale_figures(answers: Answers, folder: str | Path) -> list[Path]:
    """Return the files of figures that are missing, edited, or differ from the records."""
    charts = _charts(answers)
    stale = []
    for name in (*charts, *ILLUSTRATIONS):
        file = Path(folder) / f"{name}.svg"
        drawing, _, marks = _text(file).rpartition("\n<!-- ")
        data = _of_data(charts[name]) if name in charts else ""
        if not marks or _of_drawing(drawing) not in marks or data not in marks:
            stale.append(file)
    return stale


def _charts(answers: Answers) -> dict[str, Any]:
    require_charts()
    charts = recorded_charts(answers)
    if not charts:
        raise InputError(
            f"There are no records in {answers.store.folder}. Run the study first, with fairmatch "
            "paper run."
        )
    return charts


def _save(chart: Any, file: Path) -> Path:
    """Write a chart as SVG, with hashes of its data and its drawing, and return the file."""
    with whole_file(file) as partial:
        chart.save(str(partial), format="svg")
        drawing = partial.read_text(encoding="utf-8")
        marks = f"{_of_data(chart)} {_of_drawing(drawing)}"
        partial.write_text(f"{drawing}\n<!-- {marks} -->\n", encoding="utf-8")
    return file


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _of_data(chart: Any) -> str:
    """Return a hash of the numbers that a chart shows, regardless of its style."""
    shown = chart.to_dict()["datasets"].values()
    # The last digits of a mean may differ from machine to machine.
    rounded = [pd.DataFrame(rows).round(6).to_json(double_precision=6) for rows in shown]
    return f"data:{sha256(''.join(sorted(rounded)).encode()).hexdigest()}"


def _of_drawing(text: str) -> str:
    """Return a hash of the drawing itself, which must not be edited."""
    return f"drawing:{sha256(text.encode()).hexdigest()}"
