"""Charts, as Vega-Lite specifications made with Altair.

The charts of the report take a list of rows, the same as the table beside them. Labels stand above
their bars, so long ones are readable on a phone too. Colours are CSS variables of the page, such as
``var(--group-1)``. The page sets them for light, dark and print.
"""

from fairmatch.report.charts.columns import CONTRIBUTION_COLOURS, contribution_chart
from fairmatch.report.charts.curves import curve_chart
from fairmatch.report.charts.distributions import (
    calibration_chart,
    cell_chart,
    cumulative_chart,
    step_chart,
)
from fairmatch.report.charts.frame import (
    GROUP_COLOURS,
    SERIES_COLOURS,
    Row,
    finished,
    require_charts,
    save_chart,
    standalone,
)
from fairmatch.report.charts.intervals import interval_chart
from fairmatch.report.charts.scatter import scatter_chart
from fairmatch.report.charts.tradeoff import model_chart, paths_chart, tradeoff_chart

__all__ = [
    "CONTRIBUTION_COLOURS",
    "GROUP_COLOURS",
    "SERIES_COLOURS",
    "Row",
    "calibration_chart",
    "cell_chart",
    "contribution_chart",
    "cumulative_chart",
    "curve_chart",
    "finished",
    "interval_chart",
    "model_chart",
    "paths_chart",
    "require_charts",
    "save_chart",
    "scatter_chart",
    "standalone",
    "step_chart",
    "tradeoff_chart",
]
