"""Choosing the fairness weight on held-out rows: the best model within a gap."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import clone

from fairmatch.exceptions import (
    ConstantModelWarning,
    GapNotReachedWarning,
    InputError,
    LabelError,
    SmallGroupWarning,
    notify,
)
from fairmatch.learning.reading import Reader, labels_of, stratified_split
from fairmatch.matching.coupling import Coupling, check_coupling
from fairmatch.measures.distributions import ScoredPeople, Settings, calibration_error
from fairmatch.measures.registry import MEASURES, applicable, gap_values
from fairmatch.people.checks import BoolArray, FloatArray, check_number
from fairmatch.people.groups import Groups, read_criterion
from fairmatch.people.outcome import PROBABILITY, Outcome, largest_class
from fairmatch.people.people import People

# A model counts as deciding if its acceptance rate is at least this share of the acceptance rate of
# the most accurate model of the path, and likewise for its rejection rate.
_LEAST = 0.1
# Predictions whose spread is below this share of the target's count as constant.
_CONSTANT = 1e-3


def noise(groups: Groups, confidence: float = 0.95) -> float:
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
    sizes = np.sort(groups.sizes()[list(groups.compared)])[:2]
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
    if outcome.several:
        decided = largest_class(scores)
        counts = np.bincount(decided, weights, minlength=len(outcome.classes))
        return {
            "accuracy": float(np.average(decided == labels.values, weights=weights)),
            # Those who do not get the class that most people get.
            "acceptance_rate": float(1.0 - counts.max() / counts.sum()),
            **gaps,
        }
    accepted = outcome.decide(scores, 0.5)
    return {
        "accuracy": float(np.average(accepted == labels.positive, weights=weights)),
        "acceptance_rate": float(np.average(accepted, weights=weights)),
        **gaps,
        **_calibration(scores, people),
    }


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
    known = applicable(model._outcome)
    if named is not None and not (isinstance(named, str) and named in known):
        raise InputError(
            f"gap_measure={named!r} is not a gap that can be bounded here; choose one of "
            f"{', '.join(known)}.",
            parameter="gap_measure",
        )
    if model.max_gap is not None:
        check_number("max_gap", model.max_gap, "[0, 1]" if decides else "[0, inf)")
    check_number("validation_size", model.validation_size, "(0, 1)")
    if model.confidence is None:
        return
    check_number("confidence", model.confidence, "(0.5, 1)")
    if model.given is not None:
        raise InputError(
            "confidence was set with given, and a gap within strata has no confidence limit. Leave "
            "one of the two out.",
            parameter="confidence",
        )
    if model.max_gap is None:
        raise InputError(
            f"confidence={model.confidence:g} is about the bound max_gap, which is not given. Set "
            "both, or leave confidence out.",
            parameter="confidence",
        )
    limited = [name for name, measure in known.items() if measure.limit is not None]
    if (named or model._gap_measure) not in limited:
        raise InputError(
            f"gap_measure={named!r} has no confidence limit here, and confidence needs one. Choose "
            f"one of {', '.join(limited)}, or leave confidence out.",
            parameter="confidence",
        )


@dataclass(frozen=True)
class Bound:
    """A bound on a gap, and how the best model within it is found.

    Attributes
    ----------
    max_gap : float
        Largest allowed gap.
    measure : str
        Name of the gap.
    confidence : float, optional
        With it, the upper confidence limit of the gap is bounded.
    outcome : Outcome
        What the models predict.
    weight_name : str
        How warnings name the weights of the path.
    """

    max_gap: float
    measure: str
    confidence: float | None = None
    outcome: Outcome = PROBABILITY
    weight_name: str = "fairness_weight"

    def best(self, curve: pd.DataFrame) -> int:
        """Return the position of the model to keep.

        Among the models within ``max_gap``, this is the most accurate one that decides. If each of
        them accepts nearly everybody or nearly nobody, it is the most accurate one, with a
        warning. If no model is within ``max_gap``, it is the one with the smallest gap among those
        that decide, with a warning. Models that predict numbers all count as deciding.
        """
        counted = self.measure if self.confidence is None else f"{self.measure}_limit"
        gaps = curve[counted].to_numpy()
        if np.isnan(gaps).any():
            raise LabelError(
                f"{self.measure} cannot be measured on the held-out rows: there a group has no "
                "rows of one of the classes. Choose another gap_measure or a larger "
                "validation_size."
            )
        within, decides = gaps <= self.max_gap, self._decides(curve)
        if not within.any():
            # A confidence limit is smallest for a model that decides nothing. Such a model is the
            # last choice here too.
            best = int(np.argmin(np.where(decides, gaps, np.inf) if decides.any() else gaps))
            self._warn_of_the_smallest(curve, gaps, best, constant=not decides.any())
            return best
        candidates = within & decides if (within & decides).any() else within
        good = curve["accuracy"] if self.outcome.decides else -curve["rmse"]
        best = int(np.argmax(np.where(candidates, good.to_numpy(), -np.inf)))
        self._warn_of_a_constant(curve.iloc[best], bool(decides[best]))
        return best

    def _decides(self, curve: pd.DataFrame) -> BoolArray:
        if not self.outcome.decides:
            return np.ones(len(curve), dtype=bool)
        rates = curve["acceptance_rate"].to_numpy()
        usual = rates[int(np.argmax(curve["accuracy"].to_numpy()))]
        decides = (rates > 0.0) & (rates < 1.0)
        decides &= (rates >= _LEAST * usual) & (1.0 - rates >= _LEAST * (1.0 - usual))
        return np.asarray(decides)

    def limits(self, scored: Sequence[FloatArray], people: People, scale: float) -> list[float]:
        """Return the upper confidence limit of every model's gap; all of them hold at once."""
        assert self.confidence is not None
        level = 1.0 - (1.0 - self.confidence) / len(scored)
        settings = Settings(outcome=self.outcome, spread=None if self.outcome.decides else scale)
        measure = MEASURES[self.measure]
        return [
            measure.upper_limit(ScoredPeople(people, scores, settings), level) for scores in scored
        ]

    def warn_of_few(self, people: People, kept: pd.Series) -> None:
        """Warn if the held-out groups are too small to know whether the bound is kept."""
        groups, gap = people.groups, float(kept[self.measure])
        if self.confidence is not None:
            return
        if people.strata is not None:
            self._warn_of_small_strata(people)
            return
        if self.outcome.decides:
            values = labels_of(people).values
            known: Sequence[int | None] = MEASURES[self.measure].labels
            if self.outcome.several:
                known = MEASURES[self.measure].of_classes().labels(self.outcome)
            compared = [
                groups if label is None else groups.take(np.flatnonzero(values == label))
                for label in known
            ]
            halves = [noise(one) for one in compared]
            half, groups = float(np.mean(halves)), compared[int(np.argmax(halves))]
            what, most = "rates", min(1.0, gap + half)
        else:
            if MEASURES[self.measure].limit is None:
                return
            sizes = np.sort(groups.sizes()[list(groups.compared)])[:2]
            half = 1.96 * float(kept["spread"]) * float(np.sqrt((1.0 / sizes).sum()))
            if MEASURES[self.measure].is_relative and kept["wasserstein_parity_gap"] > 0.0:
                half *= kept["relative_wasserstein_parity_gap"] / kept["wasserstein_parity_gap"]
            what, most = "mean predictions", gap + half
        if half <= self.max_gap:
            return
        notify(
            f"The held-out groups are small ({groups.sized(groups.compared)} rows): a gap of "
            f"{what} between them is known to about ±{_short(half)}, more than "
            f"max_gap={self.max_gap:g}. The model that is kept has {self.measure} {_short(gap)} "
            f"on these rows; on new rows it may be up to {_short(most)}. Set confidence=, "
            "hold out more rows (validation_size=), or pool groups.",
            SmallGroupWarning,
        )

    def _warn_of_small_strata(self, people: People) -> None:
        """Warn if chance alone makes gaps within the held-out strata that exceed the bound."""
        parts = people.comparisons(read_criterion("demographic_parity"))
        sizes = np.array([(len(part.source_rows), len(part.target_rows)) for part in parts])
        # The mean size of a difference of two shares of one half, if both come from chance.
        chance = np.sqrt(0.5 / np.pi * (1.0 / sizes).sum(axis=1)) @ [part.weight for part in parts]
        if self.outcome.decides and chance > self.max_gap:
            notify(
                "The held-out strata are small: within them, chance alone makes a mean absolute "
                f"gap of up to about {chance:.3f}, more than max_gap={self.max_gap:g}. Condition "
                "on fewer or coarser factors, or hold out more rows (validation_size=).",
                SmallGroupWarning,
            )

    def _warn_of_the_smallest(
        self, curve: pd.DataFrame, gaps: FloatArray, kept: int, *, constant: bool
    ) -> None:
        tried = curve["fairness_weight"]
        at = f"at {self.weight_name.removeprefix('fairness_')} {tried[kept]:g}"
        what, advice = self.measure, "Try larger weights where the method allows them"
        if self.confidence is not None:
            what = f"an upper limit of {self.measure}"
            advice = "Hold out more rows, or ask for a smaller confidence"
        elif tried[kept] < tried.max():
            advice = f"Larger ones, up to {tried.max():g}, were tried. Take more rows"
        elif self.weight_name != "fairness_weight" and tried[kept] == 1.0:
            at, advice = f"{at}, the largest there is", "Take more rows"
        notify(
            f"No {self.weight_name.replace('_', ' ')} reached {what} <= {self.max_gap:g} on the "
            f"held-out rows. The model that is kept has {gaps[kept]:.4g}, {at}. {advice}, or "
            "allow a larger max_gap.",
            GapNotReachedWarning,
        )
        if constant:
            notify(
                "Every model of the path accepts nearly everybody or nearly nobody among the "
                "held-out rows, and so does the one that is kept. Try smaller weights.",
                ConstantModelWarning,
            )

    def _warn_of_a_constant(self, kept: pd.Series, decides: bool) -> None:
        what = f"with {self.measure} <= {self.max_gap:g}"
        if not self.outcome.decides:
            # The target's own spread follows from the error and from R squared.
            least = (_CONSTANT * kept["rmse"]) ** 2
            if kept["spread"] ** 2 * max(1.0 - kept["r2"], 1e-9) < least:
                notify(
                    f"The best model {what} gives everyone nearly the same prediction. Allow a "
                    "larger max_gap.",
                    ConstantModelWarning,
                )
        elif not decides:
            rate = kept["acceptance_rate"]
            if self.outcome.several:
                notify(
                    f"The most accurate model {what} gives nearly everybody the same class, and "
                    "so does every other model within the bound. Allow a larger max_gap.",
                    ConstantModelWarning,
                )
                return
            whom = "everybody" if rate > 0.5 else "nobody"
            nearly = "" if rate in (0.0, 1.0) else "nearly "
            notify(
                f"The most accurate model {what} accepts {nearly}{whom} among the held-out rows "
                f"({rate:.2%}), and every other model within the bound decides as little. It is "
                "fair because it decides nothing. Allow a larger max_gap, or try "
                "FTMBoostingClassifier('predicted') or QuantileAlignmentClassifier, which usually "
                "reach small gaps with models that decide.",
                ConstantModelWarning,
            )


def fit_models(
    estimator: Any,
    reader: Reader,
    people: People,
    weights: Sequence[float],
    coupling: Coupling | None = None,
) -> list[Any]:
    """Return one fitted estimator per weight. They share encoding and matching."""
    template = clone(estimator)
    rows = reader.fit(people, coupled=coupling is not None)
    known = reader.attributes()
    template._adopt(known)
    scorers = template._learn(rows, weights, coupling)
    return [
        estimator._fitted(weight, {**known, **scorer.attributes()})
        for weight, scorer in zip(weights, scorers, strict=True)
    ]


def choose_model(
    model: Any, reader: Reader, people: People, weights: Sequence[float]
) -> tuple[Any, FairnessPath, pd.DataFrame]:
    """Return the model that is kept, the path that it is from, and the path's measures.

    The models are trained on part of the people, and measured on the others.
    """
    assert model.max_gap is not None
    train, held_out = stratified_split(
        labels_of(people).values, people.groups, model.validation_size, model.random_state
    )
    plain = clone(model).set_params(max_gap=None, confidence=None)
    models = fit_models(plain, reader, people.take(train), weights)
    path = FairnessPath(np.asarray(weights, dtype=np.float64), models)
    bound = Bound(
        float(model.max_gap),
        model.gap_measure or model._gap_measure,
        model.confidence,
        reader.outcome,
        model._weight_name or "fairness_weight",
    )
    if not MEASURES[bound.measure].applies_to(reader.outcome):
        raise InputError(
            f"gap_measure={bound.measure!r} and {len(reader.classes_)} classes do not combine. "
            f"Choose one of {', '.join(applicable(reader.outcome))}.",
            parameter="gap_measure",
        )
    kept = people.take(held_out[~np.isin(people.groups.codes[held_out], people.groups.apart)])
    seen = reader.encode(kept)
    scored = [one._scores(seen.table.inputs) for one in models]  # type: ignore[union-attr]
    coupling = None
    if MEASURES[bound.measure].needs_coupling:
        coupling = models[0]._match(seen)
    curve = path.measured(scored, kept, coupling)
    if bound.confidence is not None:
        curve[f"{bound.measure}_limit"] = bound.limits(scored, kept, reader.scale_)
    best = bound.best(curve)
    bound.warn_of_few(kept, curve.iloc[best])
    return models[best], path, curve


def _short(number: float) -> str:
    """Return a number with three digits, or whole where it has more before the point."""
    return f"{number:,.0f}" if abs(number) >= 100.0 else f"{number:.3g}"
