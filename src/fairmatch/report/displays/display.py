"""The base class of displays: one picture, in Altair or in matplotlib."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from fairmatch.auditing.scoring import score_people
from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.report.charts.frame import save_chart, standalone
from fairmatch.storage.atomic import whole_file
from fairmatch.tables.arrays import FloatArray

Kind = TypeVar("Kind", bound="Display")


class Display(ABC):
    """A picture that is made by `from_estimator` or `from_predictions`, and drawn by `plot`.

    Attributes
    ----------
    chart_ : altair chart
        The picture, if it was drawn with Altair.
    ax_, figure_ : matplotlib Axes and Figure
        The picture, if it was drawn with matplotlib.
    """

    chart_: Any
    ax_: Any
    figure_: Any

    def plot(self: Kind, *, backend: str = "altair", ax: Any = None) -> Kind:
        """Draw the picture.

        Parameters
        ----------
        backend : {"altair", "matplotlib"}, default="altair"
            The library that draws the picture. It is imported only when it is needed.
        ax : matplotlib Axes, optional
            Axes to draw on. They imply matplotlib.

        Returns
        -------
        Display
            The display itself, with ``chart_``, or with ``ax_`` and ``figure_``.
        """
        if ax is not None or backend == "matplotlib":
            self.ax_ = _new_axes() if ax is None else ax
            self.figure_ = self.ax_.figure
            self._draw_matplotlib(self.ax_)
        elif backend == "altair":
            self.chart_ = standalone(self._draw_altair())
        else:
            raise InputError(f"backend={backend!r} is unknown. Choose 'altair' or 'matplotlib'.")
        return self

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file and return the file.

        Parameters
        ----------
        path : str or Path
            A file that ends in .svg or .png. An Altair chart can also be written as .html.
        """
        if getattr(self, "chart_", None) is not None:
            return save_chart(self.chart_, path)
        file = Path(path)
        if file.suffix not in (".svg", ".png"):
            raise InputError(f"{file} must end in .svg or .png. Name such a file.")
        with whole_file(file) as partial:
            self.figure_.savefig(partial, format=file.suffix.removeprefix("."))
        return file

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(map(repr, self._drawn())) or 'no model'}>"

    @abstractmethod
    def _drawn(self) -> list[str]:
        """Return the names of what is drawn."""

    @abstractmethod
    def _draw_altair(self) -> Any:
        """Return the chart, in the colours of the report."""

    @abstractmethod
    def _draw_matplotlib(self, ax: Any) -> None:
        """Draw on the axes."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Return the picture for a notebook."""
        if getattr(self, "chart_", None) is None:
            return {"text/plain": repr(self)}
        return self.chart_._repr_mimebundle_(include, exclude)


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "backend='matplotlib' needs matplotlib: pip install matplotlib. Or draw with "
            "backend='altair'."
        ) from error
    # Made without pyplot, so no window opens and no global list keeps the figure alive.
    return Figure(layout="constrained").add_subplot()


def named(given: Any, name: str | None) -> dict[str, Any]:
    """Return models or scores by name; a single one gets ``name``, or the name of its class."""
    if isinstance(given, Mapping):
        if not given:
            raise InputError("There is no model to draw: the mapping is empty. Pass at least one.")
        return {str(key): value for key, value in given.items()}
    if name is None:
        name = type(given).__name__ if hasattr(given, "predict_proba") else "model"
    return {name: given}


def scores_of(
    estimators: Mapping[str, Any], X: Any, sensitive_features: ArrayLike, pos_label: Any
) -> dict[str, FloatArray]:
    """Return the scores of some rows by each fitted classifier."""
    for name, model in estimators.items():
        if not hasattr(model, "predict_proba"):
            raise InputError(
                f"{name} is {type(model).__name__}, which has no predict_proba. Pass a fitted "
                "classifier, or pass its scores to from_predictions."
            )
    return {
        name: score_people(model, X, sensitive_features, pos_label)
        for name, model in estimators.items()
    }
