"""Choosing the fairness weight on held-out rows: the most accurate model within a gap."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from fairmatch.exceptions import (
    ConstantModelWarning,
    GapNotReachedWarning,
    InputError,
    LabelError,
    SmallGroupWarning,
)
from fairmatch.learning.curve import FairnessPath
from fairmatch.learning.groupsizes import DecidedSizes
from fairmatch.learning.limits import LIMITED, noise, upper_limit
from fairmatch.learning.notice import notify
from fairmatch.learning.rows import (
    TrainingRows,
    check_same_rows,
    stratified_split,
    take_rows,
)
from fairmatch.learning.settings import Settings
from fairmatch.measures import MEASURES
from fairmatch.tables.arrays import read_column, read_weights
from fairmatch.tables.groups import Groups, read_groups
from fairmatch.tables.parameters import check_flag, check_number, check_weights

# A model counts as deciding if its acceptance rate is at least this share of the acceptance rate of
# the most accurate model of the path, and likewise for its rejection rate.
_LEAST = 0.1


@dataclass(frozen=True)
class GapChoice(Settings):
    """The choice of one model from a path.

    Parameters
    ----------
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight: it trains a path on part of
        the rows and keeps the most accurate model whose gap on the held-out rows is at most this.
        A model that accepts nearly everybody or nearly nobody is kept only if no other qualifies.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in `fairmatch.measures.MEASURES`. By default it is
        the gap of decisions that belongs to the criterion.
    fairness_weights : sequence of float, optional
        Weights that ``max_gap`` chooses from. By default they are the method's own, and 0 where
        that means a model without a penalty.
    validation_size : float, default=0.2
        Share of the rows held out for the choice by ``max_gap``, stratified by label and group.
    refit : bool, default=False
        Whether to train the chosen model again on all rows.
    confidence : float, optional
        A number such as 0.95. With it, the upper confidence limit of a gap must be at most
        ``max_gap``. The limits hold for all models of the path at once. By default, the measured
        gap itself must be at most ``max_gap``.

    Attributes
    ----------
    path_ : FairnessPath
        With ``max_gap``: the models that the choice was made from.
    validation_curve_ : DataFrame
        With ``max_gap``: the measures of these models on the held-out rows.
    """

    max_gap: float | None = None
    gap_measure: str | None = None
    fairness_weights: Sequence[float] | None = None
    validation_size: float = 0.2
    refit: bool = False
    confidence: float | None = None

    # Gaps that may be bounded, gaps that have a confidence limit, and the values of ``max_gap``.
    _gaps: ClassVar[Collection[str]] = MEASURES
    _limited: ClassVar[Collection[str]] = LIMITED
    _bounds: ClassVar[str] = "[0, 1]"

    def check(self) -> None:
        """Raise an error that names the first parameter that cannot be used."""
        named = self.gap_measure
        if named is not None and not (isinstance(named, str) and named in self._gaps):
            raise InputError(
                f"gap_measure={named!r} is not a gap that can be bounded here; choose one of "
                f"{', '.join(self._gaps)}."
            )
        if self.max_gap is not None:
            check_number("max_gap", self.max_gap, self._bounds)
        check_number("validation_size", self.validation_size, "(0, 1)")
        check_flag("refit", self.refit)
        if self.fairness_weights is not None:
            check_weights("fairness_weight", self.fairness_weights, "[0, inf)")
        if self.confidence is not None:
            self._check_confidence(self.confidence)

    def _check_confidence(self, confidence: float) -> None:
        check_number("confidence", confidence, "(0.5, 1)")
        if self.max_gap is None:
            raise InputError(
                f"confidence={confidence:g} is about the bound max_gap, which is not given. Set "
                "both, or leave confidence out."
            )
        if self.refit:
            raise InputError(
                "confidence was given with refit=True. The limit holds for the model that was "
                "measured on the held-out rows, and refit trains another. Leave one of the two out."
            )
        if self.gap_measure not in (None, *self._limited):
            raise InputError(
                f"gap_measure={self.gap_measure!r} has no confidence limit here, and confidence "
                f"needs one. Choose one of {', '.join(self._limited)}, or leave confidence out."
            )

    def search(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> tuple[Any, FairnessPath, pd.DataFrame]:
        """Return the model that is kept, the path that it is from, and the path's measures.

        Parameters
        ----------
        estimator : FairEstimator
            What to train.
        X : table or array of shape (n_rows, n_columns)
            Features.
        y : array-like of shape (n_rows,)
            Labels, or the numbers to predict.
        sensitive_features : array-like, optional
            Group of every row, unless the estimator finds it in X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        """
        reader = estimator._reader()
        features, sensitive = reader.split(X, sensitive_features)
        given = read_groups(sensitive)
        # The split takes rows by position, so columns of other lengths are refused before it.
        labels, _ = estimator._target.read(y, sample_weight)
        check_same_rows(len(labels), len(given))
        read_weights(sample_weight, n_rows=len(labels))
        if (n_rows := _num_samples(features)) != len(labels):
            raise InputError(
                f"X has {n_rows} rows, y has {len(labels)}. Pass one label for every row."
            )
        groups, ignored = estimator._sizes().apply(given)
        # Which groups are small is decided on the whole table, and holds for both parts of it.
        small = frozenset(given.labels) - frozenset(groups.labels)
        sizes = DecidedSizes(small, frozenset(groups.labels[code] for code in ignored))
        train, held_out = stratified_split(
            read_column(y, "y"), groups, self.validation_size, estimator.random_state
        )
        held_out = held_out[~np.isin(groups.codes[held_out], ignored)]
        columns = X, y, sensitive_features, sample_weight
        fitted: list[Any]
        kept: list[Any]
        fitted, kept = (
            [None if v is None else take_rows(v, rows) for v in columns]
            for rows in (train, held_out)
        )
        weights = self._weights(estimator)
        plain = clone(estimator).set_params(max_gap=None, confidence=None)
        models = plain._fit_path(
            fitted[0],
            fitted[1],
            weights,
            sensitive_features=fitted[2],
            sample_weight=fitted[3],
            sizes=sizes,
        )
        path = FairnessPath(np.asarray(weights, dtype=np.float64), models)
        measure = self.gap_measure or estimator._gap_measure
        rows = self._rows(models[0], kept, groups.take(held_out))
        curve = path.curve(
            kept[0],
            kept[1],
            sensitive_features=kept[2],
            sample_weight=kept[3],
            coupling=models[0]._match_held_out(rows) if measure == "matched_parity_gap" else None,
        )
        if self.confidence is not None:
            curve[f"{measure}_limit"] = self._limits(path, measure, kept, rows)
        best = self.best(curve, measure, weight=estimator._weight_name or "fairness_weight")
        self._warn_of_few(rows, ignored, curve.iloc[best], measure)
        chosen = models[best]
        if self.refit:
            chosen = clone(chosen).fit(
                X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
            )
        return chosen, path, curve

    def _rows(self, model: Any, kept: list[Any], groups: Groups) -> TrainingRows:
        """Return the held-out rows in the form that the models read them."""
        reader = model.reader_
        features, codes = reader.read_new(kept[0], kept[2], "fit")
        points = reader.points(features)
        labels = model._target.labels(model, kept[1])
        weights = read_weights(kept[3], n_rows=len(labels))
        return TrainingRows(labels, groups, weights, points, reader.inputs(features, codes, points))

    def best(self, curve: pd.DataFrame, measure: str, *, weight: str = "fairness_weight") -> int:
        """Return the position of the model to keep.

        Among the models within ``max_gap``, this is the most accurate one that decides. If each of
        them accepts nearly everybody or nearly nobody, it is the most accurate one, with a
        warning. If no model is within ``max_gap``, it is the one with the smallest gap among those
        that decide, with a warning.
        """
        counted = measure if self.confidence is None else f"{measure}_limit"
        gaps = curve[counted].to_numpy()
        if np.isnan(gaps).any():
            raise LabelError(
                f"{measure} cannot be measured on the held-out rows: there a group has no rows "
                "of one of the classes. Choose another gap_measure or a larger validation_size."
            )
        within, rates = gaps <= self.max_gap, curve["acceptance_rate"].to_numpy()
        usual = rates[int(np.argmax(curve["accuracy"].to_numpy()))]
        decides = (rates > 0.0) & (rates < 1.0)
        decides &= (rates >= _LEAST * usual) & (1.0 - rates >= _LEAST * (1.0 - usual))
        if not within.any():
            # A confidence limit is smallest for a model that decides nothing. Such a model is the
            # last choice here too.
            best = int(np.argmin(np.where(decides, gaps, np.inf) if decides.any() else gaps))
            constant = not decides.any()
            self._warn_of_the_smallest(curve, gaps, best, measure, weight, constant)
            return best
        candidates = within & decides if (within & decides).any() else within
        best = int(np.argmax(np.where(candidates, curve["accuracy"].to_numpy(), -np.inf)))
        if not decides[best]:
            self._warn_of_a_constant(measure, rates[best])
        return best

    def _weights(self, estimator: Any) -> Sequence[float]:
        if self.fairness_weights is not None:
            return self.fairness_weights
        own: Sequence[float] = estimator._choice_weights or estimator.default_weights
        return own if 0.0 in own or not estimator._zero_is_plain else (0.0, *own)

    def _limits(
        self, path: FairnessPath, measure: str, kept: list[Any], rows: TrainingRows
    ) -> list[float]:
        if measure not in LIMITED:
            raise InputError(
                f"confidence={self.confidence} was given, and {measure} has no confidence limit. "
                f"Choose gap_measure among {', '.join(LIMITED)}, or leave confidence out."
            )
        assert self.confidence is not None
        # The models share the error probability: all limits then hold at once.
        level = 1.0 - (1.0 - self.confidence) / len(path)
        return [
            upper_limit(measure, scores, rows.positive, rows.groups, rows.weights, level)
            for scores in path.scores(kept[0], sensitive_features=kept[2])
        ]

    def _warn_of_few(
        self, rows: TrainingRows, ignored: Sequence[int], kept: pd.Series, measure: str
    ) -> None:
        compared = [
            rows.groups
            if label is None
            else rows.groups.take(np.flatnonzero(rows.positive == label))
            for label in MEASURES[measure].labels
        ]
        halves = [noise(groups, ignored) for groups in compared]
        half, gap = float(np.mean(halves)), float(kept[measure])
        if self.confidence is not None or half <= float(self.max_gap or 0.0):
            return
        fewest = compared[int(np.argmax(halves))]
        notify(
            f"The held-out groups are small ({fewest.sized()} rows): a gap of rates between them "
            f"is known to about ±{half:.2g}, more than max_gap={self.max_gap:g}. The model that is "
            f"kept has {measure} {gap:.3g} on these rows; on new rows it may be up to "
            f"{min(1.0, gap + half):.2g}. Set confidence=, hold out more rows "
            "(validation_size=), or pool groups.",
            SmallGroupWarning,
        )

    def _warn_of_the_smallest(
        self,
        curve: pd.DataFrame,
        gaps: Any,
        kept: int,
        measure: str,
        weight: str,
        constant: bool = False,
    ) -> None:
        tried = curve["fairness_weight"]
        at = f"at {weight.removeprefix('fairness_')} {tried[kept]:g}"
        what, advice = measure, "Try larger fairness_weights where the method allows them"
        if self.confidence is not None:
            what = f"an upper limit of {measure}"
            advice = "Hold out more rows, or ask for a smaller confidence"
        elif tried[kept] < tried.max():
            advice = f"Larger ones, up to {tried.max():g}, were tried. Take more rows"
        elif weight != "fairness_weight" and tried[kept] == 1.0:
            at, advice = f"{at}, the largest there is", "Take more rows"
        notify(
            f"No {weight.replace('_', ' ')} reached {what} <= {self.max_gap:g} on the held-out "
            f"rows. The model that is kept has {gaps[kept]:.4g}, {at}. {advice}, or allow a "
            "larger max_gap.",
            GapNotReachedWarning,
        )
        if constant:
            notify(
                "Every model of the path accepts nearly everybody or nearly nobody among the "
                "held-out rows, and so does the one that is kept. Try smaller fairness_weights.",
                ConstantModelWarning,
            )

    def _warn_of_a_constant(self, measure: str, acceptance_rate: float) -> None:
        whom = "everybody" if acceptance_rate > 0.5 else "nobody"
        nearly = "" if acceptance_rate in (0.0, 1.0) else "nearly "
        notify(
            f"The most accurate model with {measure} <= {self.max_gap:g} accepts {nearly}{whom} "
            f"among the held-out rows ({acceptance_rate:.2%}), and every other model within the "
            "bound decides as little. It is fair because it decides nothing. Allow a larger "
            "max_gap, or try FTMBoostingClassifier('predicted') or QuantileAlignmentClassifier, "
            "which usually reach small gaps with models that decide.",
            ConstantModelWarning,
        )
