"""Choosing the fairness weight on held-out rows: the best model within a gap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
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
from fairmatch.measures import MEASURES, Measure
from fairmatch.measures.distributions import ScoredPeople
from fairmatch.measures.distributions import Settings as MeasureSettings
from fairmatch.measures.gaps import read_scored
from fairmatch.measures.registry import applicable, gap_values
from fairmatch.people.checks import (
    FloatArray,
    check_flag,
    check_number,
    check_weights,
    read_column,
    read_weights,
)
from fairmatch.people.groups import Groups, read_groups
from fairmatch.people.outcome import NUMBER, PROBABILITY, Outcome
from fairmatch.people.people import Labels, People
from fairmatch.people.weights import Weights


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
    given = scores, groups, sample_weight
    try:
        scored = read_scored(*given, y, classes[1])
    except LabelError:  # the rows lack a class, so there are no error rates
        scored = read_scored(*given)
    gaps = gap_values(scored.people, scored.scores, coupling=coupling, undefined=True)
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

    # What the scores are, which says what gaps there are, and the values of ``max_gap``.
    _outcome: ClassVar[Outcome] = PROBABILITY
    _bounds: ClassVar[str] = "[0, 1]"

    @property
    def _gaps(self) -> Mapping[str, Measure]:
        """The gaps that may be bounded."""
        return applicable(self._outcome)

    @property
    def _limited(self) -> list[str]:
        """Names of the gaps that have a confidence limit."""
        return [name for name, measure in self._gaps.items() if measure.limit is not None]

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
        if measure not in self._limited:
            raise InputError(
                f"confidence={self.confidence} was given, and {measure} has no confidence limit. "
                f"Choose gap_measure among {', '.join(self._limited)}, or leave confidence out."
            )
        assert self.confidence is not None
        # The models share the error probability: all limits then hold at once.
        level = 1.0 - (1.0 - self.confidence) / len(path)
        weight = None if rows.weights is None else Weights(len(rows.weights), rows.weights)
        is_number = self._outcome.has_unit
        labels = None if is_number else Labels(rows.positive.astype(np.float64), (0, 1))
        people = People(rows.groups, labels=labels, weight=weight)
        spread = path.models[0].target_scale_ if is_number else None
        settings = MeasureSettings(outcome=self._outcome, spread=spread)
        return [
            MEASURES[measure].upper_limit(ScoredPeople(people, scores, settings), level)
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
        The gap that ``max_gap`` bounds, a name in
        `fairmatch.measures.MEASURES`. By default it is "mean_parity_gap".

    Attributes
    ----------
    validation_curve_ : DataFrame
        With ``max_gap``: the errors and gaps of these models on the held-out rows.
    """

    _outcome: ClassVar[Outcome] = NUMBER
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

    def _warn_of_few(
        self, rows: TrainingRows, ignored: Sequence[int], kept: pd.Series, measure: str
    ) -> None:
        groups = rows.groups
        if self.confidence is not None or measure not in self._limited:
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
