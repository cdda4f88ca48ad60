"""Choosing the fairness weight on rows that models have not seen: the best model within a gap."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.isotonic import isotonic_regression
from sklearn.metrics import get_scorer

from fairmatch.exceptions import (
    ConstantModelWarning,
    FairmatchWarning,
    GapNotReachedError,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
    SmallGroupWarning,
    notify,
)
from fairmatch.learning.calibration import calibrate
from fairmatch.learning.reading import (
    Reader,
    dealt,
    encoded,
    labels_of,
    seed_sequence,
    stratified_split,
)
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoredPeople, Settings, calibration_error
from fairmatch.measures.numbers import gap_along
from fairmatch.measures.registry import BOUNDED, bounded, gap_values
from fairmatch.people.checks import BoolArray, FloatArray, check_flag, check_number
from fairmatch.people.groups import Groups, read_criterion
from fairmatch.people.outcome import PROBABILITY, Outcome, largest_class
from fairmatch.people.people import IndexArray, People

# A model counts as deciding if it accepts at least this share of the number of people that the
# plain model accepts, and likewise for rejections.
_LEAST = 0.1
# A warning reports a selection rate that differs from the plain model's by this much.
_SHIFT = 0.2
# Predictions whose spread is below this share of the target's count as constant.
_CONSTANT = 1e-3
# Folds of the cross-fitting of methods that train anew in every fold.
_FOLDS = 3
# Parts of the rows from which the standard error of a score is computed.
_BLOCKS = 10
# Strengths that are tried between the one kept and the next weaker one.
_FINER = 4
# Values of the parameters of the choice for an estimator that makes no choice.
_UNASKED = {
    "max_gap": None, "confidence": None, "strict": False, "scoring": None, "calibrate": False
}  # fmt: skip


def noise(groups: Groups, deviation: float = 0.5, most: float = 1.0) -> float:
    """Return the half-width of a 95 % confidence interval of a gap of rates or means.

    The gap is the one between the two smallest groups. Rates are taken to be one half, where the
    interval is widest. The half-width is ``most`` if one of the two groups has no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairmatch.people.groups import read_groups
    >>> round(noise(read_groups(np.repeat(["a", "b"], 50))), 3)
    0.196
    """
    sizes = np.sort(groups.sizes()[list(groups.compared)])[:2]
    if not sizes.all():
        return most
    return float(ndtri(0.975) * np.sqrt((deviation**2 / sizes).sum()))


@dataclass(frozen=True, eq=False)
class FairnessPath:
    """Models along the trade-off between accuracy and fairness."""

    weights: FloatArray  #: The fairness weights.
    models: list[Any]  #: The fitted estimators, one per weight.

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
            of people who are accepted, every gap of `fairmatch.measures`, and the calibration error
            of each group and the largest of them. A gap of error rates is NaN where a group has no
            rows of a class. For regressors the columns are the weight,
            the errors, and the gaps of `fairmatch.measures.registry`. These are in units of the
            target, and in units of its standard deviation.
        """
        scored = self.scores(X, sensitive_features=sensitive_features)
        reader: Reader = self.models[0].reader_
        people = reader.read_scored(X, y, sensitive_features, sample_weight)
        check_coupling(coupling)
        if coupling is not None:
            coupling.check_rows(len(people))
            coupling.check_groups(people.groups)
        return self.measured(scored, people, coupling)

    def measured(
        self, scored: Sequence[FloatArray], people: People, coupling: Coupling | None = None
    ) -> pd.DataFrame:
        """Return the measures of every model's scores of the same people."""
        reader: Reader = self.models[0].reader_
        rows = [
            {
                "fairness_weight": float(weight),
                **measure_scores(scores, people, reader.outcome, coupling, reader.scale_),
            }
            for weight, scores in zip(self.weights, scored, strict=True)
        ]
        return pd.DataFrame(rows)


def measure_scores(
    scores: FloatArray,
    people: People,
    outcome: Outcome,
    coupling: Coupling | None = None,
    scale: float = 1.0,
) -> dict[str, float]:
    """Return how good scores are, and all their gaps."""
    labels, weights = labels_of(people), people.weights
    settings = Settings(outcome=outcome, spread=None if outcome.decides else scale)
    gaps = gap_values(people, scores, settings, coupling=coupling, undefined=True)
    if not outcome.decides:
        return {**errors_of(scores, labels.values, weights), **gaps}
    decided = decided_classes(scores)
    accuracy = float(np.average(decided == labels.values, weights=weights))
    if outcome.several:  # those who do not get the class that most people get
        counts = np.bincount(decided, weights, minlength=len(outcome.classes))
        rate = float(1.0 - counts.max() / counts.sum())
    else:
        rate = float(np.average(decided, weights=weights))
        gaps |= _calibration(scores, people)
    return {"accuracy": accuracy, "acceptance_rate": rate, **gaps}


def decided_classes(scores: FloatArray) -> NDArray[np.intp]:
    """Return the position of the decided class, by probabilities of one class or of several."""
    return largest_class(scores) if scores.ndim == 2 else (scores >= 0.5).astype(np.intp)


def _calibration(scores: FloatArray, people: People) -> dict[str, float]:
    """Return the calibration error of every group that is compared, and the largest."""
    positive, weights, found = labels_of(people).positive, people.weights, {}
    for code in people.groups.compared:
        rows = np.flatnonzero(people.groups.is_group(code))
        own = None if weights is None else weights[rows]
        name = f"calibration_error[{people.groups.labels[code]}]"
        found[name] = calibration_error(scores[rows], positive[rows], own)
    return {"calibration_error": float(np.max([*found.values(), -np.inf])), **found}


def errors_of(
    predicted: FloatArray, wanted: FloatArray, weights: FloatArray | None
) -> dict[str, float]:
    r"""Return root mean squared error, mean absolute error, :math:`R^2` and the spread."""
    errors = predicted - wanted
    squared = float(np.average(errors**2, weights=weights))
    mean = np.average(wanted, weights=weights)
    variance = float(np.average((wanted - mean) ** 2, weights=weights))
    centre = np.average(predicted, weights=weights)
    return {
        "rmse": squared**0.5,
        "mae": float(np.average(np.abs(errors), weights=weights)),
        "r2": 1.0 - squared / variance if variance > 0.0 else float("nan"),
        "spread": float(np.average((predicted - centre) ** 2, weights=weights)) ** 0.5,
    }


def check_choice(model: Any) -> None:
    """Raise an error that names the first parameter of the choice that cannot be used."""
    named, decides = model.gap_measure, model._outcome.decides
    known = bounded(model._outcome)
    if named is not None and not (isinstance(named, str) and named in known):
        raise InputError(
            f"gap_measure={named!r} is not a gap that can be bounded here; choose one of "
            f"{', '.join(known)}.",
            parameter="gap_measure",
        )
    if model.max_gap is not None:
        check_number("max_gap", model.max_gap, "[0, 1]" if decides else "[0, inf)")
    check_number("validation_size", model.validation_size, "(0, 1)")
    check_flag("strict", model.strict)
    _check_calibration(model)
    read_scorer(model)
    asked = {
        "confidence": model.confidence is not None,
        "strict": bool(model.strict),
        "scoring": not _is_usual(model),
    }
    for name in asked if model.max_gap is None else ():
        if asked[name]:
            raise InputError(
                f"{name}={getattr(model, name)!r} needs max_gap: it says how fit chooses a model "
                f"within this bound. Set max_gap too, or leave {name} out.",
                parameter=name,
            )
    if model.confidence is None:
        return
    check_number("confidence", model.confidence, "(0.5, 1)")
    if model.given is not None:
        raise InputError(
            "confidence was set with given, but a gap within strata has no confidence limit. "
            "Leave one of the two out.",
            parameter="confidence",
        )
    limited = [name for name, measure in known.items() if measure.limit is not None]
    if (named or model._gap_measure) not in limited:
        raise InputError(
            f"gap_measure={named!r} has no confidence limit here, but confidence needs one. "
            f"Choose one of {', '.join(limited)}, or leave confidence out.",
            parameter="confidence",
        )


def _check_calibration(model: Any) -> None:
    """Raise if a calibration would break the bound on a gap."""
    check_flag("calibrate", model.calibrate)
    measure = model.gap_measure or model._gap_measure
    if not model.calibrate:
        return
    if model.max_gap is not None and not BOUNDED[measure].needs_decisions:
        raise InputError(
            f"calibrate=True moves scores on both sides of 0.5, but gap_measure={measure!r} "
            "compares scores, so its bound would not hold. Choose a gap of decisions, or leave "
            "calibrate out.",
            parameter="calibrate",
        )
    if getattr(model, "decisions", None) == "align":
        raise InputError(
            "calibrate=True calibrates scores separately by group, but decisions='align' gives "
            "all groups the same distribution. Set decisions='threshold', or leave calibrate out.",
            parameter="calibrate",
        )


def _is_usual(model: Any) -> bool:
    """Return whether an estimator asks for the usual score of its outcome."""
    usual = "accuracy" if model._outcome.decides else "neg_root_mean_squared_error"
    return model.scoring is None or (isinstance(model.scoring, str) and model.scoring == usual)


def read_scorer(model: Any) -> Callable[..., float] | None:
    """Return the scorer of an estimator, or None for the usual score of its outcome."""
    scoring = model.scoring
    if _is_usual(model):
        return None
    if callable(scoring):
        return scoring  # type: ignore[no-any-return]
    try:
        return get_scorer(scoring)  # type: ignore[no-any-return]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"scoring={scoring!r} is not a scorer. Pass a name that "
            "sklearn.metrics.get_scorer_names() lists, or a callable (estimator, X, y).",
            parameter="scoring",
        ) from error


def _weighs(scorer: Callable[..., float]) -> bool:
    """Return whether a scorer, or the function that a scorer of scikit-learn calls, has weights."""
    known = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    return any(own.name == "sample_weight" or own.kind is own.VAR_KEYWORD for own in known)


class _Ready(BaseEstimator):  # type: ignore[misc]
    """A model whose scores of the rows are known, for scikit-learn's scorers."""

    def __init__(self, scores: FloatArray) -> None:
        self.scores = scores

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        return self.scores


class _ReadyRegressor(RegressorMixin, _Ready):  # type: ignore[misc]
    """A regressor whose predictions are known."""


class _ReadyClassifier(ClassifierMixin, _Ready):  # type: ignore[misc]
    """A classifier whose probabilities are known."""

    @property
    def classes_(self) -> NDArray[np.int64]:
        return np.arange(self.predict_proba(None).shape[1])

    def predict_proba(self, X: Any) -> FloatArray:
        if self.scores.ndim == 2:
            return self.scores
        return np.column_stack([1.0 - self.scores, self.scores])

    def predict(self, X: Any) -> NDArray[Any]:
        return decided_classes(self.scores)


@dataclass(frozen=True)
class Bound:
    """A bound on a gap, and how the model to keep is chosen from candidates."""

    max_gap: float  #: Largest allowed gap.
    measure: str  #: Name of the gap.
    confidence: float | None = None  #: With it, the upper confidence limit of the gap is bounded.
    outcome: Outcome = PROBABILITY  #: What the models predict.
    weight_name: str = "fairness_weight"  #: How warnings name the weights of the path.
    #: Whether the gap falls as the weight grows, because it is the one that is penalised.
    falls: bool = True
    strict: bool = False  #: Whether to raise an error if no candidate is within the bound.

    @classmethod
    def of(cls, model: Any, outcome: Outcome) -> "Bound":
        """Return the bound that an estimator asks for."""
        measure = model.gap_measure or model._gap_measure
        if not BOUNDED[measure].applies_to(outcome):
            raise InputError(
                f"gap_measure={measure!r} and {len(outcome.classes)} classes do not combine. "
                f"Choose one of {', '.join(bounded(outcome))}.",
                parameter="gap_measure",
            )
        falls = set(BOUNDED[measure].labels) <= set(read_criterion(model.criterion).labels)
        name = model._weight_name or "fairness_weight"
        max_gap = 1.0 if model.max_gap is None else float(model.max_gap)
        given = max_gap, measure, model.confidence, outcome
        return cls(*given, name, falls, model.strict)

    def expected(self, curve: pd.DataFrame) -> FloatArray:
        """Return the gap of every candidate, smoothed along the weights.

        A gap that is penalised falls with the weight, so its trend is an isotonic regression. The
        trend of another gap is a mean over neighbours. Models that give everyone the same decision
        keep their gap.
        """
        gaps = np.array(curve[self.measure], dtype=np.float64)
        order = np.argsort(curve["fairness_weight"].to_numpy(), kind="stable")
        order = order[self.decides(curve)[order]]
        if len(order) < 3:
            return gaps
        own = gaps[order]
        if self.falls:
            gaps[order] = isotonic_regression(own, increasing=False)
        else:
            padded = np.concatenate([own[:1], own, own[-1:]])
            gaps[order] = (padded[:-2] + 2.0 * own + padded[2:]) / 4.0
        return gaps

    def decides(self, curve: pd.DataFrame) -> BoolArray:
        """Return which candidates accept, and reject, a tenth as many people as the plain model."""
        if not self.outcome.decides:
            # The target's own spread follows from the error and from R squared.
            spread = curve["spread"].to_numpy() ** 2 * np.maximum(1.0 - curve["r2"], 1e-9)
            return np.asarray(spread >= (_CONSTANT * curve["rmse"].to_numpy()) ** 2)
        rates = curve["acceptance_rate"].to_numpy()
        usual = rates[int(np.argmin(curve["fairness_weight"].to_numpy()))]
        decides = (rates > 0.0) & (rates < 1.0)
        decides &= (rates >= _LEAST * usual) & (1.0 - rates >= _LEAST * (1.0 - usual))
        return np.asarray(decides)

    def best(self, curve: pd.DataFrame, error: float = 0.0, noise: float = 0.0) -> tuple[int, bool]:
        """Return the position of the candidate to keep, and whether it keeps the bound.

        Candidates qualify if they decide, their expected gap is within ``max_gap`` and their score
        is within one standard error of the best such score. Of those whose gap is within the bound
        even if its standard error is added (``gap_error`` of the curve), it is the one nearest to
        the plain model. If there is none of these, it is the fairest that qualifies. So this margin
        costs at most one standard error of the score. If no gap is within the bound, it is the
        fairest one whose expected gap is the smallest up to noise, and not the plain model.
        """
        if np.isnan(curve[self.measure]).any():
            raise LabelError(
                f"{self.measure} cannot be measured on the held-out rows, because a group has no "
                "rows of one class there. Choose another gap_measure or a larger validation_size."
            )
        weights, gaps = curve["fairness_weight"].to_numpy(), self.expected(curve)
        within, decides = gaps <= self.max_gap, self.decides(curve)
        if not within.any():
            kept = decides if decides.any() else np.ones(len(curve), dtype=bool)
            if (weights[kept] > 0.0).any():
                kept = kept & (weights > 0.0)
            kept = kept & (gaps <= gaps[kept].min() + noise)
            return int(np.argmax(np.where(kept, weights, -np.inf))), False
        kept = within & decides if (within & decides).any() else within
        scores, above = curve["score"].to_numpy(), gaps + curve.get("gap_error", 0.0) - self.max_gap
        kept = kept & (scores >= scores[kept].max() - error)
        kept = kept & (above <= max(0.0, above[kept].min()))
        return int(np.argmin(np.where(kept, weights, np.inf))), True

    def resolution(self, people: People, spread: float = 0.0) -> tuple[float, Groups]:
        """Return the precision of the gap (a half-width), and the groups that limit it."""
        groups = people.groups
        if BOUNDED[self.measure].needs_number:  # the mean of everybody's deviation, with a sign
            deviation = 0.5 if self.outcome.decides else spread
            return 1.96 * deviation / float(np.sqrt(len(people))), groups
        if people.strata is not None:
            return self._chance(people) if self.outcome.decides else 0.0, groups
        if self.outcome.decides:
            values = labels_of(people).values
            compared = [
                groups if label is None else groups.take(np.flatnonzero(values == label))
                for label, _ in BOUNDED[self.measure].cells(self.outcome)
            ]
            halves = [noise(one) for one in compared]
            half = max(halves) if BOUNDED[self.measure].agg == "worst_case" else np.mean(halves)
            return float(half), compared[int(np.argmax(halves))]
        return noise(groups, spread, np.inf), groups

    @staticmethod
    def _chance(people: People) -> float:
        """Return the mean absolute gap within strata by chance alone, at rates of 1/2."""
        parts = people.comparisons(read_criterion("demographic_parity"))
        sizes = np.array([(len(part.source_rows), len(part.target_rows)) for part in parts])
        weights = [part.weight for part in parts]
        return float(np.sqrt(0.5 / np.pi * (1.0 / sizes).sum(axis=1)) @ weights)

    def tell(
        self, trials: "Trials", place: int, *, reached: bool, test: "Tested | None" = None
    ) -> None:
        """Warn once about all that is wrong with the chosen model, or raise with ``strict``."""
        curve, people, sure = trials.curve, trials.people, self.confidence is not None
        kept, decides = curve.iloc[place], bool(self.decides(curve)[place])
        measure, gap = BOUNDED[self.measure], float(kept[self.measure])
        half, groups = self.resolution(people, float(kept.get("spread", 0.0)))
        half /= measure.unit_of(trials.settings)
        few = half > self.max_gap and not sure
        few = few and (self.outcome.decides or measure.limit is not None)
        shift = self._shift(curve, place) if decides else ""
        if reached and decides and not (few or shift):
            return
        name, asked = self.weight_name.replace("_", " "), f"{self.measure} <= {self.max_gap:g}"
        where = "by cross-fitting" if trials.crossed else "on the held-out rows"
        odd = bool(shift) or not decides
        category: type[FairmatchWarning] = SmallGroupWarning
        if odd and not (decides and few):
            category = ConstantModelWarning
        words = list[str]()
        if not reached:
            category = GapNotReachedWarning
            kept_at = f"at {name.removeprefix('fairness ')} {kept['fairness_weight']:g}"
            which = "fairest" if self.strict else "model that is kept"
            if test is None:
                words.append(f"No {name} reached {asked} {where}.")
                words.append(
                    f"The {which} has {_short(gap)} {where}, {kept_at}; {trials.widest(place)}."
                )
            else:
                words.append(
                    f"No {name} could be shown to keep {asked} with confidence "
                    f"{self.confidence:g}: {test.words(self.max_gap, gap)}"
                )
                words.append(f"The {which} has {_short(gap)} {where}, {kept_at}.")
        if not decides:
            words.append(self._constant(kept, reached))
        elif shift:
            words.append(shift)
        if few and people.strata is not None:
            words.append(
                "The strata are small: chance alone gives a mean absolute gap within them of up "
                f"to about {half:.3f}, more than max_gap={self.max_gap:g}. Use fewer or coarser "
                "factors."
            )
        elif few:
            what = "rates" if self.outcome.decides else "mean predictions"
            words.append(
                f"The groups are small ({groups.sized(groups.compared)} rows): a gap of {what} "
                f"between them is known only to about ±{_short(half)}, more than "
                f"max_gap={self.max_gap:g}."
            )
            if reached:
                most = min(1.0, gap + half) if self.outcome.decides else gap + half
                words.append(
                    f"The model that is kept has {self.measure} {_short(gap)} {where}; on new rows "
                    f"it may be up to {_short(most)}."
                )
        last = name == "fairness weight" and place == len(curve) - 1
        larger = "allow a larger max_gap"
        more = "take more rows"
        if few and people.strata is None and self.max_gap > 0.0:
            more += f" (about {_short((half / self.max_gap) ** 2)} times as many)"
        advice = [
            (test is not None, f"Use more rows, a smaller confidence, or {larger}"),
            (few and len(groups.compared) > 2, "Pool small groups (small_groups=('pool', N) pools "
             f"those of fewer than N rows), {more}, or {larger}"),
            (not few and odd, "Allow a larger max_gap, or take smaller weights"),
            (not few and last, f"Try larger weights where the method allows them, or {larger}"),
            (True, f"{more[0].upper()}{more[1:]}, or {larger}"),
        ]  # fmt: skip
        message = " ".join([*words, f"{next(text for holds, text in advice if holds)}."])
        if not reached and self.strict:
            raise GapNotReachedError(message, parameter="max_gap")
        notify(message, category)

    def _shift(self, curve: pd.DataFrame, place: int) -> str:
        """Return a sentence about the selection rate if it is far from that of the plain model."""
        if not self.outcome.decides or self.outcome.several:
            return ""
        usual, rate = curve["acceptance_rate"].iloc[[0, place]]
        plain = "plain model" if curve["fairness_weight"].iloc[0] == 0.0 else "first of the path"
        if abs(rate - usual) < _SHIFT:
            return ""
        return (
            f"The model that is kept accepts {rate:.1%} of these people, and the {plain} "
            f"{usual:.1%}. A gap also shrinks if nearly everybody or nearly nobody is accepted, "
            "so compare the two rates before you use the model."
        )

    def _constant(self, kept: pd.Series, reached: bool) -> str:
        what = f" with {self.measure} <= {self.max_gap:g}" if reached else ""
        if not self.outcome.decides:
            return f"The model{what} gives everyone nearly the same prediction."
        if self.outcome.several:
            return f"The model{what} gives nearly everybody the same class."
        rate = float(kept["acceptance_rate"])
        whom = "everybody" if rate > 0.5 else "nobody"
        nearly = "" if rate in (0.0, 1.0) else "nearly "
        return (
            f"The model{what} accepts {nearly}{whom} ({rate:.2%}), so it has no gap only "
            "because it treats everyone the same. QuantileAlignmentClassifier and "
            "FTMBoostingClassifier(transport='predicted'), its default, usually reach small gaps "
            "with useful models."
        )


@dataclass(frozen=True)
class Tested:
    """The test of the fairest candidate on the rows set aside, which it did not pass."""

    gap: float  #: Its gap among these rows.
    limit: float  #: The upper confidence limit of the gap.
    groups: Groups  #: The groups of these rows.

    def words(self, max_gap: float, expected: float) -> str:
        """Return sentences on the test, and on how many rows would show the bound.

        The distance from a gap to its limit shrinks with the root of the number of rows.
        ``expected`` is the gap by cross-fitting of the model that is kept.
        """
        found = (
            f"on the {len(self.groups):,} rows set aside for it "
            f"({self.groups.sized(self.groups.compared)}) the gap is {_short(self.gap)} and its "
            f"upper limit {_short(self.limit)}."
        )
        half = self.limit - self.gap
        if not (max_gap > 0.0 and 0.0 < half < np.inf):
            return found
        found += (
            " The limit would be within the bound with about "
            f"{_short(max(1.0, (half / max_gap) ** 2))} times as many rows if the gap were 0"
        )
        if 0.0 < expected < max_gap:
            times = max(1.0, (half / (max_gap - expected)) ** 2)
            found += f", and with about {_short(times)} times as many if it were {_short(expected)}"
        return f"{found}."


@dataclass(frozen=True)
class Prepared:
    """What a method has prepared on some rows, to train models for requested weights."""

    train: Callable[[Sequence[float]], Sequence[Any]]  #: Returns one scorer per weight.
    #: Returns the matching of the rows, or None if there is none to share.
    coupling: Callable[[], Coupling | None] = lambda: None
    #: Returns scores of the rows for every weight. Neither the model behind a score nor its
    #: adjustment has seen the row. It is None for methods that would have to train again.
    unseen: Callable[[Sequence[float]], list[FloatArray]] | None = None


class Training:
    """A method with encoded rows, which trains models for requested weights."""

    def __init__(
        self,
        estimator: Any,
        reader: Reader,
        rows: People,
        coupling: Coupling | None = None,
        *,
        choosing: bool = True,
    ) -> None:
        template, self.estimator, self.known = clone(estimator), estimator, reader.attributes()
        template._adopt(self.known)
        template._choosing = choosing
        self.prepared: Prepared = template._prepare(rows, coupling)

    def models(self, weights: Sequence[float]) -> list[Any]:
        """Return one fitted estimator per weight."""
        return [
            self.estimator._fitted(weight, {**self.known, **scorer.attributes()})
            for weight, scorer in zip(weights, self.prepared.train(weights), strict=True)
        ]


def fit_models(
    estimator: Any,
    reader: Reader,
    people: People,
    weights: Sequence[float],
    coupling: Coupling | None = None,
) -> list[Any]:
    """Return one fitted estimator per weight. They share encoding and matching."""
    rows = reader.fit(people, coupled=coupling is not None)
    return Training(estimator, reader, rows, coupling, choosing=False).models(weights)


class Trials:
    """Candidates, measured on rows that their models have not seen.

    A method with cross-fitted scores is measured on all rows. Others hold out rows once, or in
    three folds if a group is too small for the bound, and the method cross-fits.
    """

    def __init__(self, model: Any, reader: Reader, people: People, rows: People) -> None:
        self.bound, self.reader = Bound.of(model, reader.outcome), reader
        named = model.get_params(deep=False)
        self.plain = clone(model).set_params(**{k: v for k, v in _UNASKED.items() if k in named})
        self.asked = model.max_gap is not None
        self.scorer = read_scorer(model)
        spread = None if reader.outcome.decides else reader.scale_
        self.settings = Settings(outcome=reader.outcome, spread=spread)
        self.rows = rows
        whole = model._prepares_unseen
        self.folds = [] if whole else self._split(model, people)
        self.crossed = whole or len(self.folds) > 1
        self.trainings = [
            Training(self.plain, reader, rows.take(train)) for train, _ in self.folds
        ] or [Training(self.plain, reader, rows)]
        tested = np.concatenate([test for _, test in self.folds] or [np.arange(len(people))])
        self.kept = ~np.isin(people.groups.codes[tested], people.groups.apart)
        self.seen = tested[self.kept]
        self.people = people.take(self.seen)
        if BOUNDED[self.bound.measure].needs_number:  # raise before anything is trained
            gap_along(np.zeros(len(self.seen)), self.people.groups.numbers)
        # By the weight of a candidate: its model, and its scores of the people.
        self.models, self.scored = dict[float, Any](), dict[float, FloatArray]()
        self.curve, self._coupling = pd.DataFrame(), None

    def _split(self, model: Any, people: People) -> list[tuple[IndexArray, IndexArray]]:
        values = labels_of(people).values
        try:
            split = stratified_split(
                values, people.groups, model.validation_size, model.random_state
            )
        except GroupError:
            if not model._cross_fits:
                raise
        else:
            spread = float(np.std(values)) if not self.bound.outcome.decides else 0.0
            held_out = people.take(split[1])
            known = self.bound.resolution(held_out, spread)[0] <= self.bound.max_gap
            if known or not model._cross_fits:
                return [split]
        return crossed_folds(people, _FOLDS, model.random_state)

    def measure(self, weights: Sequence[float]) -> None:
        """Train and measure candidates."""
        found = [training.models(weights) for training in self.trainings]
        if unseen := self.trainings[0].prepared.unseen:
            new = unseen(weights)
            if not self.bound.outcome.decides:
                new = [self.reader.mean_ + self.reader.scale_ * scores for scores in new]
        else:
            inputs = [encoded(self.rows.take(test)).inputs for _, test in self.folds]
            new = [
                np.concatenate([m._scores(i) for m, i in zip(models, inputs, strict=True)])
                for models in zip(*found, strict=True)
            ]
        new = [scores[self.kept] for scores in new]
        if BOUNDED[self.bound.measure].needs_coupling and self._coupling is None:
            self._coupling = found[0][0]._match(self.rows.take(self.seen))
        curve = FairnessPath(np.asarray(weights, float), found[0]).measured(
            new, self.people, self._coupling
        )
        known = not BOUNDED[self.bound.measure].needs_coupling
        curve["gap_error"] = [
            jackknife(partial(self._gap, scores), self.people) if known else 0.0 for scores in new
        ]
        curve["score"] = [self.score(scores) for scores in new]
        curve = pd.concat([self.curve, curve])
        self.curve = curve.sort_values("fairness_weight", kind="stable", ignore_index=True)
        self.models |= zip(map(float, weights), found[0], strict=True)
        self.scored |= zip(map(float, weights), new, strict=True)

    @property
    def weights(self) -> list[float]:
        """The weights of the candidates."""
        return list(map(float, self.curve["fairness_weight"]))

    def _gap(self, scores: FloatArray, rows: IndexArray | None = None) -> float:
        people = replace(self.people, table=None)
        if rows is not None:
            people, scores = people.take(rows), scores[rows]
        try:
            return BOUNDED[self.bound.measure].value(ScoredPeople(people, scores, self.settings))
        except (InputError, LabelError):  # too few people, or none of a class
            return float("nan")

    def tried(self, weights: Sequence[float], *margins: float, search: bool) -> tuple[int, bool]:
        """Measure candidates; return the choice without a confidence, and if it is in the bound."""
        if search:
            self.search(weights, *margins)
        else:
            self.measure(weights)
        place, reached = self.choose()
        unlisted = self.plain._prepares_unseen and not self.plain._lists
        if self.asked and reached and place > 0 and unlisted:
            low, high = self.weights[place - 1 : place + 1]
            self.measure(np.linspace(low, high, _FINER + 2)[1:-1].tolist())
            place, reached = self.choose()
        return place, reached

    def search(self, weights: Sequence[float], *margins: float) -> None:
        """Measure few of the weights: the plain model, and a bisection for the bound.

        A bisection for every margin then looks for models whose gap is below it by so much; the
        first one has the standard error of the gap as its margin.
        """
        order = sorted(map(float, weights))
        self.measure(order[:1])
        for margin in (0.0, *margins):
            low, high = 0, len(order)
            if self._passes(order[0], margin):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                if order[middle] not in self.models:
                    self.measure([order[middle]])
                passes = self._passes(order[middle], margin)
                low, high = (low, middle) if passes else (middle, high)

    def _passes(self, weight: float, margin: float) -> bool:
        """Return whether a model is within the bound, or decides alike for nearly everyone."""
        place = self.weights.index(weight)
        line = self.curve.iloc[place]
        slack = margin or line["gap_error"]
        within = line[self.bound.measure] + slack <= self.bound.max_gap
        return bool(within or not self.bound.decides(self.curve)[place])

    def score(self, scores: FloatArray, rows: Any = slice(None)) -> float:
        """Return the score that the choice maximises."""
        labels, weights = labels_of(self.people), self.people.weights
        own = None if weights is None else weights[rows]
        scores = scores[rows]
        if not self.bound.outcome.decides:
            if self.scorer is None:
                return -errors_of(scores, labels.values[rows], own)["rmse"]
            wanted: Any = labels.values[rows]
            ready: Any = _ReadyRegressor(scores)
        else:
            wanted, ready = labels.values[rows].astype(np.int64), _ReadyClassifier(scores)
            if self.scorer is None:
                return float(np.average(ready.predict(None) == wanted, weights=own))
        assert self.people.table is not None
        assert self.scorer is not None
        table = self.people.table.take(np.arange(len(labels))[rows]).native
        given = {} if own is None or not _weighs(self.scorer) else {"sample_weight": own}
        try:
            return float(self.scorer(ready, table, wanted, **given))
        except ValueError as error:
            if not self.bound.outcome.several:
                raise
            raise InputError(
                f"scoring and {len(self.bound.outcome.classes)} classes do not combine: {error}. "
                "Choose a scorer of several classes, such as 'accuracy', 'roc_auc_ovr' or "
                "'f1_macro'.",
                parameter="scoring",
            ) from error

    def error(self, place: int) -> float:
        """Return the standard error of a candidate's score, from blocks of the rows."""
        labels = labels_of(self.people)
        if len(labels) < 10 * _BLOCKS:
            return 0.0
        order = np.argsort(labels.values, kind="stable")
        try:
            scores = self.scored[self.weights[place]]
            parts = [self.score(scores, rows=order[k::_BLOCKS]) for k in range(_BLOCKS)]
        except ValueError:  # a block has rows of one class, and the score needs both
            return 0.0
        return float(np.std(parts, ddof=1) / np.sqrt(_BLOCKS))

    def choose(self) -> tuple[int, bool]:
        """Return the position of the candidate to keep, and whether it keeps the bound."""
        bound = self.bound
        spread = float(self.curve["spread"].max()) if not bound.outcome.decides else 0.0
        noise = bound.resolution(self.people, spread)[0] / 1.96
        best = int(np.argmax(self.curve["score"].to_numpy()))
        place, reached = bound.best(self.curve, self.error(best), noise)
        self.curve["expected_gap"] = bound.expected(self.curve)
        return place, reached

    def widest(self, place: int) -> str:
        """Return in words between which groups the gap is largest."""
        measure = BOUNDED[self.bound.measure]
        if measure.needs_coupling:
            return "matched people differ by this much"
        if measure.needs_number:
            return "mean scores differ by this much along the number"
        scored = ScoredPeople(self.people, self.scored[self.weights[place]], self.settings)
        pair = max(combinations(scored.codes, 2), key=lambda codes: measure.between(scored, codes))
        groups, sizes = self.people.groups, self.people.groups.sizes()
        names = [f"{groups.labels[code]!r} ({int(sizes[code]):,} rows)" for code in pair]
        return f"the gap is that between {names[0]} and {names[1]}"

    @property
    def calibrated(self) -> People:
        """The people by whose groups scores are calibrated: one group if a model sees none."""
        people = replace(self.people, table=None)
        if self.reader.at_prediction:
            return people
        return replace(people, groups=Groups(np.zeros(len(people), dtype=np.intp), (None,)))

    def calibrated_error(self, given: FloatArray) -> float:
        """Return the largest calibration error of a group; each half is calibrated on the other."""
        scores, people = given.copy(), self.calibrated
        for rest, test in crossed_folds(self.people, 2, 0):
            learned = calibrate(people.take(rest), given[rest])
            scores[test] = learned.moved(given[test], people.groups.codes[test])
        return _calibration(scores, self.people)["calibration_error"]

    def final(self, weight: float) -> Any:
        """Return the model of a weight, trained on all rows."""
        if not self.folds:
            return self.trainings[0].models([weight])[0]
        coupling = self.trainings[0].prepared.coupling() if len(self.folds) == 1 else None
        if coupling is not None:  # pairs of the training rows; the loss sees everybody
            coupling = coupling.renumbered(self.folds[0][0], len(self.rows))
        return Training(self.plain, self.reader, self.rows, coupling).models([weight])[0]

    def path(self, place: int, final: Any) -> FairnessPath:
        """Return the candidates as a path, with the model that is kept in its place."""
        models = [self.models[weight] for weight in self.weights]
        models[place] = final
        return FairnessPath(np.array(self.weights), models)


def jackknife(value: Callable[[IndexArray], float], people: People) -> float:
    """Return the standard error of a value of rows, from blocks with all groups and labels.

    It is 0 where it cannot be known: among fewer than 100 people, or where a value is NaN.
    """
    if len(people) < 10 * _BLOCKS:
        return 0.0
    block = dealt(_BLOCKS, labels_of(people).values, people.groups.codes)
    parts = [value(np.flatnonzero(block != k)) for k in range(_BLOCKS)]
    return float(np.nan_to_num(np.std(parts) * np.sqrt(_BLOCKS - 1.0)))


def crossed_folds(people: People, n_folds: int, seed: Any) -> list[tuple[IndexArray, IndexArray]]:
    """Return folds in which every group, and every label of it, has its share."""
    labels = labels_of(people)
    known = labels.positive if labels.classes is None else labels.values
    order = np.random.default_rng(seed_sequence(seed)).permutation(len(people))
    fold = dealt(n_folds, known, people.groups.codes, order=order)
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def choose_model(
    model: Any, reader: Reader, people: People, weights: Sequence[float]
) -> tuple[Any, dict[str, Any]]:
    """Return the model that is kept, and its path, the path's measures and its calibration."""
    if model.calibrate and reader.outcome.several:
        raise InputError(
            f"calibrate=True is for two classes, but y has {len(reader.outcome.classes)}. Leave "
            "it out.",
            parameter="calibrate",
        )
    if people.weights is not None:
        people = people.take(np.flatnonzero(people.weights))
    if not reader.outcome.several:
        people.comparisons(read_criterion(model.criterion))  # raises if a group lacks a label
    rows, test, search = reader.fit(people), None, model._searches and not model._lists
    trials = Trials(model, reader, people, rows)
    place, reached = trials.tried(weights, search=search)
    if model.max_gap is None:  # the same model as without a calibration
        final = Training(trials.plain, reader, rows).models(weights)[0]
    elif model.confidence is None:
        final = trials.final(trials.weights[place])
    else:
        split = stratified_split(
            labels_of(people).values, people.groups, model.validation_size, model.random_state
        )
        whole, floor = trials, trials.weights[place]
        trials = Trials(model, reader, people.take(split[0]), rows.take(split[0]))
        tests = split[1][~np.isin(people.groups.codes[split[1]], people.groups.apart)]
        spread = 0.0 if reader.outcome.decides else float(np.std(labels_of(people).values))
        # A model whose gap is below the bound by so much passes a test in four of five cases.
        half = trials.bound.resolution(people.take(tests), spread)[0]
        margin = half * float(ndtri(model.confidence) + ndtri(0.8)) / 1.96
        trials.tried(weights, margin, search=search)
        place, test, final = _certified(trials, floor, people.take(tests), rows.take(tests))
        reached = final is not None
        if final is None:
            if floor > trials.weights[place]:
                trials.measure([floor])
                trials.choose()
                place = trials.weights.index(floor)
            final = whole.final(trials.weights[place])
    if model.max_gap is not None:
        trials.bound.tell(trials, place, reached=reached, test=test)
    found = {"path_": trials.path(place, final), "validation_curve_": trials.curve}
    if model.calibrate:
        scored = [trials.scored[weight] for weight in trials.weights]
        trials.curve["calibrated_error"] = list(map(trials.calibrated_error, scored))
        found["calibration_"] = calibrate(trials.calibrated, scored[place])
    return final, found


def _certified(
    trials: Trials, floor: float, people: People, rows: People
) -> tuple[int, Tested | None, Any]:
    """Test candidates on rows set aside, the fairest first; return the last one that passes.

    The order of the tests is fixed before these rows are seen, so every test has the full level,
    and the probability that any model with a larger gap passes is at most one minus the confidence.
    Where the tests end may therefore depend on all rows: at the weight that is chosen without a
    confidence, the ``floor``. If no candidate reaches it, the fairest is tested alone.
    If none passes, the fairest is returned, with its test and without a model.
    """
    bound, curve = trials.bound, trials.curve
    assert bound.confidence is not None
    weights, gaps = curve["fairness_weight"].to_numpy(), curve["expected_gap"].to_numpy()
    decides = bound.decides(curve)
    known = np.flatnonzero(decides if decides.any() else np.ones(len(curve), dtype=bool))
    fairest = max(known.tolist(), key=lambda place: (-gaps[place], weights[place]))
    sequence = known[(weights[known] >= floor) & (weights[known] <= weights[fairest])]
    order = sequence[np.argsort(-weights[sequence])].tolist() or [fairest]
    training = trials.trainings[0]
    if trials.folds:
        training = Training(trials.plain, trials.reader, trials.rows)
    curve[f"{bound.measure}_limit"] = np.nan
    kept: tuple[int, Tested | None, Any] | None = None
    inputs = encoded(rows).inputs
    for place in order:
        (model,) = training.models([float(weights[place])])
        scored = ScoredPeople(people, model._scores(inputs), trials.settings)
        limit = BOUNDED[bound.measure].upper_limit(scored, bound.confidence)
        curve.loc[place, f"{bound.measure}_limit"] = limit
        if not limit <= bound.max_gap:
            if kept is None:
                gap = float(BOUNDED[bound.measure].value(scored))
                kept = fairest, Tested(gap, float(limit), people.groups), None
            break
        kept = place, None, model
    assert kept is not None
    return kept


def _short(number: float) -> str:
    """Return a number with three digits, or whole where it has more before the point."""
    return f"{number:,.0f}" if abs(number) >= 100.0 else f"{number:.3g}"
