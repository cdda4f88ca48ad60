"""Choosing the fairness weight on held-out rows: the best model within a gap."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from fairmatch.exceptions import (
    ConstantModelWarning,
    GapNotReachedWarning,
    InputError,
    LabelError,
    SmallGroupWarning,
)
from fairmatch.learning.reading import (
    DecidedSizes,
    TrainingRows,
    check_same_rows,
    stratified_split,
    take_rows,
)
from fairmatch.learning.settings import Settings, notify
from fairmatch.matching.coupling import Coupling
from fairmatch.measures import MEASURES, Measure, gap_table
from fairmatch.measures.intervals import fold, mean_difference, rate_difference
from fairmatch.measures.registry import REAL_GAPS
from fairmatch.people.checks import (
    BoolArray,
    FloatArray,
    check_flag,
    check_number,
    check_weights,
    read_column,
    read_weights,
)
from fairmatch.people.groups import Groups, read_groups

# Gaps that have a limit, and the classes that each of them compares; None stands for everybody.
LIMITED: dict[str, tuple[bool | None, ...]] = {
    "demographic_parity_gap": (None,),
    "mean_parity_gap": (None,),
    "true_positive_gap": (True,),
    "false_positive_gap": (False,),
    "equalized_odds_gap": (True, False),
}


def upper_limit(
    measure: str,
    scores: FloatArray,
    positive: BoolArray,
    groups: Groups,
    sample_weight: Any,
    confidence: float,
) -> float:
    """Return an upper confidence limit of the largest gap over pairs of groups.

    Parameters
    ----------
    measure : str
        The gap, a name in `LIMITED`.
    scores : array of shape (n_rows,)
        Scores of rows that the model was not trained on.
    positive : array of bool, shape (n_rows,)
        Which rows have the positive label.
    groups : Groups
        Group of every row.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. With weights, a group counts by its effective number of rows.
    confidence : float
        Smallest probability that the limit holds.

    Returns
    -------
    float
        The limit; NaN if a group has no rows of a class that is compared.

    Notes
    -----
    All pairs of groups and all classes share the error probability equally (Bonferroni). Rates are
    compared by Newcombe's interval, and means by Welch's. The limit of equalised odds is the mean
    of the limits of its two gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.people.groups import read_groups
    >>> groups = read_groups(np.repeat([0, 1], 100))
    >>> scores = np.tile([0.2, 0.8], 100)
    >>> limit = upper_limit(
    ...     "demographic_parity_gap", scores, scores > 0.5, groups, None, confidence=0.95)
    >>> 0.1 < limit < 0.2
    True
    """
    labels = LIMITED[measure]
    present = np.flatnonzero(groups.sizes()).tolist()
    pairs = list(combinations(range(len(present)), 2))
    error = (1.0 - confidence) / (len(pairs) * len(labels))
    weights = read_weights(sample_weight, n_rows=len(scores))
    if measure == "mean_parity_gap" and weights is not None:
        return min(1.0, mean_gap_limit(scores, groups, weights, confidence))
    mass = np.ones(len(scores)) if weights is None else weights
    limits = []
    for label in labels:
        inside = np.ones(len(scores), bool) if label is None else positive == label
        members = [
            np.flatnonzero(groups.is_group(code) & inside & (mass > 0.0)) for code in present
        ]
        if not all(map(len, members)):
            return float("nan")
        sides = [(scores[rows], mass[rows]) for rows in members]
        # The upper end of a two-sided interval of level 1 - 2a is a one-sided limit of level 1 - a.
        one = [_limit(measure, sides[a], sides[b], 1.0 - 2.0 * error) for a, b in pairs]
        limits.append(max(one))
    return float(np.mean(limits))


def _limit(measure: str, first: Any, second: Any, level: float) -> float:
    sides = first, second
    if measure == "mean_parity_gap":
        if min(len(scores) for scores, _ in sides) < 2:
            return 1.0
        return fold(mean_difference(first[0], second[0], level))[1]
    sizes = [max(1, int(mass.sum() ** 2 / (mass**2).sum())) for _, mass in sides]
    rates = [float(np.average(scores >= 0.5, weights=mass)) for scores, mass in sides]
    counts = (rates[0] * sizes[0], rates[1] * sizes[1])
    return fold(rate_difference(counts, (sizes[0], sizes[1]), level))[1]


def mean_gap_limit(
    predicted: FloatArray, groups: Groups, weights: FloatArray | None, confidence: float
) -> float:
    r"""Return an upper confidence limit of the largest gap of mean predictions.

    Parameters
    ----------
    predicted : array of shape (n_rows,)
        Predictions for rows that the model was not trained on.
    groups : Groups
        Group of every row.
    weights : array of shape (n_rows,), optional
        Weight of every row. With weights, a group counts by its effective number of rows.
    confidence : float
        Smallest probability that the limit holds.

    Returns
    -------
    float
        The limit; infinite if a group has fewer than two effective rows.

    Notes
    -----
    The limit is the largest one of Welch's intervals of all pairs of groups. The pairs share the
    error probability, one minus the confidence, equally (Bonferroni).

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.people.groups import read_groups
    >>> predicted = np.tile([30.0, 50.0], 100)
    >>> limit = mean_gap_limit(predicted, read_groups(np.repeat([0, 1], 100)), None, 0.95)
    >>> 2.0 < limit < 4.0
    True
    """
    mass = np.ones(len(predicted)) if weights is None else weights
    means, squares, freedom = [], [], []
    for code in np.flatnonzero(groups.sizes(mass) > 0.0).tolist():
        own = predicted[groups.rows(code)]
        shares = mass[groups.rows(code)] / mass[groups.rows(code)].sum()
        size = 1.0 / (shares**2).sum()
        if size < 2.0:
            return float("inf")
        mean = float(shares @ own)
        means.append(mean)
        squares.append(float(shares @ (own - mean) ** 2) / (size - 1.0))
        freedom.append(size - 1.0)
    pairs = list(combinations(range(len(means)), 2))
    level = 1.0 - (1.0 - confidence) / len(pairs)
    limits = []
    for a, b in pairs:
        error = squares[a] + squares[b]
        pooled = squares[a] ** 2 / freedom[a] + squares[b] ** 2 / freedom[b]
        degrees = error**2 / pooled if pooled > 0.0 else freedom[a] + freedom[b]
        limits.append(abs(means[a] - means[b]) + stats.t.ppf(level, degrees) * np.sqrt(error))
    return float(max(limits))


def noise(groups: Groups, ignored: Sequence[int] = (), confidence: float = 0.95) -> float:
    """Return the half-width of a confidence interval of a gap of rates.

    The gap is the one between the two smallest groups. Their rates are taken to be one half, where
    the interval is widest. The half-width is 1 if one of the two groups has no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.people.groups import read_groups
    >>> round(noise(read_groups(np.repeat(["a", "b"], 50))), 3)
    0.196
    """
    sizes = np.sort(np.delete(groups.sizes(), list(ignored)))[:2]
    if not sizes.all():
        return 1.0
    return float(ndtri((1.0 + confidence) / 2.0) * np.sqrt((0.25 / sizes).sum()))


@dataclass(frozen=True, eq=False)
class FairnessPath:
    """Models along the trade-off between accuracy and fairness.

    Attributes
    ----------
    weights : array of shape (n_models,)
        The fairness weights.
    models : list
        The fitted estimators, one per weight.
    """

    weights: FloatArray
    models: list[Any]

    def __len__(self) -> int:
        return len(self.models)

    def named(self) -> dict[str, Any]:
        """Return the models by name, in the form that `fairmatch.compare_models` takes."""
        weights = (f"fairness weight {weight:g}" for weight in self.weights)
        return dict(zip(weights, self.models, strict=True))

    def __repr__(self) -> str:
        kind = type(self.models[0]).__name__ if self.models else "model"
        span = f", weights {min(self.weights):g} to {max(self.weights):g}" if len(self) else ""
        return f"<FairnessPath of {len(self)} models ({kind}){span}>"

    def _repr_html_(self) -> str:
        """Return the weights and the models as a table, for a notebook."""
        rows = "".join(
            f"<tr><td>{weight:g}</td><td>{escape(type(model).__name__)}</td></tr>"
            for weight, model in zip(self.weights.tolist(), self.models, strict=True)
        )
        return (
            f"<div>{escape(repr(self))}<table><thead><tr><th>fairness weight</th><th>model</th>"
            f"</tr></thead><tbody>{rows}</tbody></table></div>"
        )

    def scores(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> list[FloatArray]:
        """Return the scores of every model.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X.

        Returns
        -------
        list of arrays of shape (n_rows,)
            For every model, the probability of the positive class, or a regressor's prediction.
        """
        # Models that were trained together share a reader, so it reads the table only once.
        read: dict[int, Any] = {}
        found = []
        for model in self.models:
            key = id(model.reader_)
            if key not in read:
                given = sensitive_features if model.reader_.at_prediction else None
                read[key] = model._inputs(X, given)
            found.append(model._scores(read[key]))
        return found

    def curve(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> pd.DataFrame:
        """Measure every model on a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their labels.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A matching of these rows, which the matched gap needs.

        Returns
        -------
        DataFrame
            One row per weight. For classifiers the columns are the weight, the accuracy, the share
            of people who are accepted and every gap of `fairmatch.measures`. A gap of error rates
            is NaN where a group has no rows of a class. For regressors the columns are the weight,
            the errors, and the gaps of `fairmatch.measures.registry`. These are in units of the
            target, and in units of its standard deviation.
        """
        scored = self.scores(X, sensitive_features=sensitive_features)
        reader = self.models[0].reader_
        groups = reader.labels(reader.split(X, sensitive_features, "curve")[1])
        rows = [
            model._measured(
                scores, y, groups=groups, sample_weight=sample_weight, coupling=coupling
            )
            for model, scores in zip(self.models, scored, strict=True)
        ]
        weights = [{"fairness_weight": float(weight)} for weight in self.weights]
        return pd.DataFrame([told | row for told, row in zip(weights, rows, strict=True)])


def measured(
    classes: NDArray[Any],
    scores: FloatArray,
    y: ArrayLike,
    *,
    groups: Any,
    sample_weight: ArrayLike | None,
    coupling: Coupling | None,
) -> dict[str, float]:
    """Return accuracy, acceptance rate and all gaps of one model's scores."""
    given = {"sensitive_features": groups, "sample_weight": sample_weight}
    gaps = gap_table(None, scores, coupling=coupling, **given)
    for name, measure in MEASURES.items():
        if measure.needs_labels:
            gaps[name] = _gap_or_nan(measure, y, scores, classes[1], given)
    accepted = scores >= 0.5
    labels = read_column(y, "y")
    if len(labels) != len(scores):
        raise InputError(
            f"y has {len(labels)} rows, X has {len(scores)}. Pass one label for every row."
        )
    weights = read_weights(sample_weight, n_rows=len(scores))
    right = classes[accepted.astype(np.intp)] == labels
    return {
        "accuracy": float(np.average(right, weights=weights)),
        "acceptance_rate": float(np.average(accepted, weights=weights)),
        **gaps,
    }


def _gap_or_nan(
    measure: Measure, y: ArrayLike, scores: FloatArray, positive: Any, given: dict[str, Any]
) -> float:
    """Return a gap of error rates, or NaN if a group has no rows of the class."""
    try:
        return measure.function(y, scores, pos_label=positive, **given)
    except LabelError:
        return float("nan")


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


_LIMITED = ("mean_parity_gap", "relative_mean_parity_gap")
# Predictions whose spread is below this share of the target's count as constant.
_CONSTANT = 1e-3


@dataclass(frozen=True)
class RealGapChoice(GapChoice):
    """The choice of one regressor from a path.

    Parameters
    ----------
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight: it trains a path on part of
        the rows and keeps the model with the least squared error whose gap on the held-out rows is
        at most this. The gap is in units of the target, or in standard deviations if the measure
        is relative.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in `REAL_GAPS` of
        `fairmatch.measures.registry`. By default it is "mean_parity_gap".

    Attributes
    ----------
    validation_curve_ : DataFrame
        With ``max_gap``: the errors and gaps of these models on the held-out rows.
    """

    _gaps: ClassVar[Collection[str]] = REAL_GAPS
    _limited: ClassVar[Collection[str]] = _LIMITED
    _bounds: ClassVar[str] = "[0, inf)"

    def best(self, curve: pd.DataFrame, measure: str, *, weight: str = "fairness_weight") -> int:
        """Return the position of the model to keep.

        Among the models within ``max_gap``, this is the one with the least error. If no model is
        within ``max_gap``, it is the one with the smallest gap, with a warning.
        """
        counted = measure if self.confidence is None else f"{measure}_limit"
        gaps, errors = curve[counted].to_numpy(), curve["rmse"].to_numpy()
        within = gaps <= self.max_gap
        if not within.any():
            self._warn_of_the_smallest(curve, gaps, int(gaps.argmin()), measure, weight)
            return int(gaps.argmin())
        best = int(np.argmin(np.where(within, errors, np.inf)))
        # The target's own spread follows from the error and from R squared.
        spread, explained = curve["spread"][best], curve["r2"][best]
        if spread**2 * max(1.0 - explained, 1e-9) < (_CONSTANT * errors[best]) ** 2:
            notify(
                f"The best model with {measure} <= {self.max_gap:g} predicts nearly the same for "
                "everybody. It is fair because it tells nobody apart. Allow a larger max_gap.",
                ConstantModelWarning,
            )
        return best

    def _limits(
        self, path: FairnessPath, measure: str, kept: list[Any], rows: TrainingRows
    ) -> list[float]:
        assert self.confidence is not None
        level = 1.0 - (1.0 - self.confidence) / len(path)
        scale = path.models[0].target_scale_ if measure.startswith("relative_") else 1.0
        return [
            mean_gap_limit(scores / scale, rows.groups, rows.weights, level)
            for scores in path.scores(kept[0], sensitive_features=kept[2])
        ]

    def _warn_of_few(
        self, rows: TrainingRows, ignored: Sequence[int], kept: pd.Series, measure: str
    ) -> None:
        groups = rows.groups
        if self.confidence is not None or measure not in _LIMITED:
            return
        sizes = np.sort(np.delete(groups.sizes(), list(ignored)))[:2]
        half = 1.96 * float(kept["spread"]) * float(np.sqrt((1.0 / sizes).sum()))
        if measure.startswith("relative_") and kept["wasserstein_parity_gap"] > 0.0:
            half *= kept["relative_wasserstein_parity_gap"] / kept["wasserstein_parity_gap"]
        if half <= float(self.max_gap or 0.0):
            return
        notify(
            f"The held-out groups are small ({groups.sized()} rows): a gap of mean predictions "
            f"is known to about ±{_short(half)}, more than max_gap={self.max_gap:g}. The model "
            f"that is kept has {measure} {_short(kept[measure])} on these rows; on new rows it may "
            f"be up to {_short(kept[measure] + half)}. Set confidence=, hold out more rows "
            "(validation_size=), or pool groups.",
            SmallGroupWarning,
        )


def _short(number: float) -> str:
    """Return a number of units with three digits, or whole where it has more before the point."""
    return f"{number:,.0f}" if abs(number) >= 100.0 else f"{number:.3g}"
