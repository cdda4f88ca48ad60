"""The base classes of every estimator, and the plain function that fits a path of models."""

import os
import re
import sys
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from fairmatch.exceptions import CouplingError, InputError
from fairmatch.learning.calibration import ScoreCalibration
from fairmatch.learning.choice import (
    Prepared,
    check_choice,
    choose_model,
    decided_classes,
    errors_of,
    fit_models,
)
from fairmatch.learning.penalties import Transport
from fairmatch.learning.reading import (
    Columns,
    Reader,
    SmallGroups,
    read_small_groups,
    read_targets,
    refuse_records,
    table_width,
)
from fairmatch.learning.saving import State, number_from, save_model
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.people.checks import (
    FloatArray,
    check_flag,
    check_weights,
    read_column,
    read_weights,
)
from fairmatch.people.groups import read_criterion
from fairmatch.people.outcome import NUMBER, PROBABILITY, Outcome
from fairmatch.people.people import People
from fairmatch.people.similarity import is_embedding

# The weights of the paper's Appendix D.2.
PAPER_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10)
# Weights of regressors. The squared loss of a target in standard deviations yields to small ones.
REGRESSION_WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)


class Scorer(Protocol):
    """A learned model that scores rows."""

    def scores(self, inputs: Any) -> FloatArray:
        """Return the score of every row that a reader has read."""

    def attributes(self) -> dict[str, Any]:
        """Return the learned attributes that the estimator shows; ``scorer_`` is the scorer."""


class FairEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that knows the groups of its rows.

    A constructor only stores its parameters. `fit` parses its arguments once, by the estimator's
    `Reader`, and calls `fit_models`. A fitted estimator shows what was learned: ``reader_`` reads
    tables as in training, and ``scorer_`` scores what the reader has read.

    A family of methods is a subclass that defines:

    ``_learn(people, weights, coupling)``, or ``_prepare(people, coupling)``
        Returns one `Scorer` per weight, or a `Prepared` that trains them when they are asked for.
        ``people`` are encoded: ``encoded(people).inputs`` is what
        the learner sees and ``encoded(people).points`` what people are matched on, labels are 0
        and 1 or standard deviations from the mean, and ``groups.apart`` are compared with nobody.
        ``self.reader_`` is the fitted reader. Here ``self`` is a copy that may be changed.
    ``_check(weights, coupling)``
        Raises an error about the first parameter that cannot be used. Call ``super()._check``.
    ``_sees``, ``_encoder()`` or ``_reader()``
        What the learner sees of a table: see `Reader`.
    ``_maps`` and ``_unseen_scores(people)``
        How people may be matched, for methods that are also `MatchesPeople`.
    ``_restore(content, facts, reader)`` and ``_state_file``
        The scorer of a saved state, which the scorer's method ``state()`` returned. Or
        ``_save_instead``: what to do instead of saving the model.

    Parameters and attributes are described here, or in the class that adds them. `documented`
    copies these entries into the docstrings of the estimators.

    Parameters
    ----------
    criterion : {"demographic_parity", "equal_opportunity", "equalized_odds"}
        Who is compared: by default everybody, with "equal_opportunity" people with a positive
        label, and with "equalized_odds" people with the same label, for each class. Of several
        classes both compare people of every class.
    reference : a group label, optional
        The group that every other group is compared with; by default the largest.
    given : str or list of str, optional
        Columns of X within whose levels people are compared, such as job title and grade. A number
        with more than ten different values is cut into five bands. For learning, strata with fewer
        than ten people of a group are pooled. ``max_gap`` bounds the mean absolute gap within
        strata, without pooling.
    similarity : None, list of columns, mapping, "relevance" or array, optional
        What makes two people alike. None counts every column by its range. A list counts only
        these columns, and a mapping gives columns weights. "relevance" weighs columns by how much
        they matter to ``y``. An array has one row per row of X in ``fit``, such as an embedding of
        texts; a model that is saved does not hold it.
    match_rows : int, "auto" or None, default="auto"
        Largest number of rows per group to match. Larger groups are sampled, stratified by label;
        two groups with at most twice this number of rows together are matched whole. The penalty
        uses the pairs of the sample, and the loss uses all rows. None matches everybody, and "auto"
        matches 2,500 rows, or a twenty-fifth of the rows of the table if that is more.
    max_gap : float, optional
        Largest allowed gap. With it, fit chooses the fairness weight by bisection. It measures
        models on rows that they were not trained on: a held-out fifth, or three folds if a group is
        too small for the bound. Candidates are models within the bound whose score is within one
        standard error of the best. If the gap of some of them plus its standard error is within the
        bound, fit keeps the one of these that is closest to the plain model, and otherwise the
        fairest candidate. It is trained again on all rows. If no model is within the bound, the
        fairest is kept, with a warning. A model that accepts nearly everybody or nearly nobody is
        kept only if no other qualifies.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in `fairmatch.measures.MEASURES`. By default it is
        the gap of decisions that belongs to the criterion.
    validation_size : float, default=0.2
        Share of the rows held out for the choice by ``max_gap``, stratified by label and group.
    confidence : float, optional
        A number such as 0.95. With it, candidates are chosen on four fifths of the rows and tested
        on the last fifth (``validation_size``), from the fairest down to the weight that would be
        kept without it. The last one whose upper confidence limit is at most ``max_gap`` is kept,
        without another fit. If there is none, the fairest is kept, with a warning.
    scoring : str or callable, default="accuracy"
        The score by which ``max_gap`` chooses: the name of a scikit-learn scorer, or a callable
        (estimator, X, y), whose labels are 0 and 1. It gets the weights if it takes
        ``sample_weight``.
    strict : bool, default=False
        Whether to raise `GapNotReachedError`, instead of a warning, if no model is within
        ``max_gap``.
    sensitive_column : str, int or a list of them, optional
        Column of X that holds the groups, by name or position. With several columns, the
        combinations of their values are the groups. With groups in X, scikit-learn's
        meta-estimators and scorers work without further settings. Those that pass on arrays, such
        as ``BaggingClassifier``, need the position.
    sensitive_at_prediction : bool, default=True
        Whether the model sees the group. With False only training needs the group. A column of X
        that is a copy of the group then raises an error, and one that reveals it gives a warning.
    small_groups : {"warn", "error", "pool", "ignore"} or a tuple, default="warn"
        What happens to groups with fewer than 30 rows. With "warn" they are compared like others,
        unless they have a single row. With "pool" they become one group, "other", and so does a
        group that is new at prediction, with a warning. With "ignore"
        the model learns from their rows and compares them with nobody. A tuple such as
        ``("pool", 50)`` has another number of rows.
    unknown : {"ignore", "error", "group"}, default="ignore"
        What happens to rows without a group. With "ignore" the model learns from them and compares
        them with nobody, and a warning says so if they are more than 5 %. With "group" they are a
        group of their own, "unknown".

    Attributes
    ----------
    groups_ : tuple
        Labels of the groups, also of rows without a group, such as "unknown" or "female, unknown".
    n_unknown_ : int
        Number of training rows without a group.
    fairness_weight_ : float
        The fairness weight that the model was trained with.
    path_ : FairnessPath
        With ``max_gap``: the candidates of the choice, with the model that is kept in its place.
    validation_curve_ : DataFrame
        With ``max_gap``: the measures of the candidates on rows that they were not trained on, with
        their ``score``, their ``expected_gap`` (the trend of the gap along the weights) and the
        standard error of the gap, ``gap_error``.
    """

    # Requested by default: meta-estimators then pass the groups on where routing is enabled.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    # What is predicted.
    # Whether there may be more than two classes.
    _several: ClassVar[bool] = False

    @property
    def _outcome(self) -> Outcome:
        """What is predicted; it depends on the classes once a table was read."""
        raise NotImplementedError

    # Name of the parameter that trades accuracy for fairness, if there is one, and its interval.
    _weight_name: ClassVar[str | None] = "fairness_weight"
    _weight_range: ClassVar[str] = "[0, inf)"
    # Weights of a whole curve, and those that ``max_gap`` chooses from, where they differ.
    _curve_weights: ClassVar[tuple[float, ...]] = PAPER_WEIGHTS
    _choice_weights: ClassVar[tuple[float, ...] | None] = None
    # Whether weight 0 stands for a model without a penalty.
    _zero_is_plain: ClassVar[bool] = True
    # How ``max_gap`` chooses: by cross-fitted scores of all rows, with a bisection instead of all
    # candidates, and in folds where a group is too small to be held out once.
    _prepares_unseen: ClassVar[bool] = False
    _searches: ClassVar[bool] = False
    _cross_fits: ClassVar[bool] = False
    # Whether models are trained to be chosen from, by ``max_gap``.
    _choosing: bool = False
    # Whether groups may be probabilities.
    _estimated: ClassVar[bool] = False
    # What the learner sees.
    _sees: ClassVar[str] = "numbers"
    # The advice if `save` cannot write the model. None if it can, into `_state_file`.
    _save_instead: ClassVar[str | None] = None
    _state_file: ClassVar[str]

    # Parameters that not every estimator has.
    max_gap: float | None = None
    gap_measure: str | None = None
    confidence: float | None = None
    scoring: Any = None
    strict: bool = False
    calibrate: bool = False
    validation_size: float = 0.2
    criterion: str = "demographic_parity"
    given: Any = None
    similarity: Any = None
    sensitive_column: Columns = None
    sensitive_at_prediction: bool = True
    small_groups: SmallGroups = "warn"
    unknown: str = "ignore"
    random_state: Any = None
    encoder: Any = "table"

    reader_: Reader
    fairness_weight_: float
    calibration_: ScoreCalibration | None = None

    def __sklearn_clone__(self) -> Any:
        """Return an unfitted copy."""
        own = self._copied()
        bare: Any = copy(self)
        vars(bare).update(dict.fromkeys(own))
        found = super(FairEstimator, bare).__sklearn_clone__()
        vars(found).update(own)
        return found

    def _copied(self) -> dict[str, Any]:
        """Return the parameters of a copy that are not clones.

        An array as ``similarity`` may be large, so it is the same.
        """
        return {"similarity": self.similarity} if is_embedding(self.similarity) else {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = getattr(self._encoder(), "missing", None) == "encode"
        return tags

    def _get_doc_link(self) -> str:
        """Return the address that scikit-learn's diagram of the estimator links to."""
        return page_of(type(self))

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,)
            For classifiers, labels of two classes; the greater one is positive. Some classifiers
            take more classes. For regressors, the numbers to predict.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row. Leave it out where ``sensitive_column`` names a column of X. The
            combinations of several attributes are the groups. Methods that match people, and
            `GroupBlindClassifier`, also take `fairmatch.group_probabilities`.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, for methods that match. It cannot be combined with
            ``max_gap``, which holds out part of the rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        refuse_records(X)
        reader = self._reader()
        if sensitive_features is not None and reader.at_prediction:
            refuse_lost_groups(type(self).__name__)
        weights = self._candidates
        check_choice(self)
        self._check(weights, coupling)
        chooses = self.max_gap is not None or self.calibrate
        if chooses and coupling is not None:
            name = "max_gap" if self.max_gap is not None else "calibrate"
            raise CouplingError(
                f"With {name}, part of the rows is held out, so a coupling of all rows cannot be "
                "used. Leave one of the two out."
            )
        people = reader.read(X, y, sensitive_features, sample_weight)
        if reader.outcome.several:
            weights = self._class_candidates(weights)
        if not chooses:
            (model,) = fit_models(self, reader, people, weights, coupling)
            self._adopt(learned(model))
        else:
            chosen, found = choose_model(self, reader, people, weights)
            self._adopt({**learned(chosen), **found})
        return self

    @property
    def default_weights(self) -> tuple[float, ...]:
        """Fairness weights of a whole curve."""
        return self._curve_weights

    @property
    def _weight(self) -> Any:
        """The fairness weight as the parameter holds it: a number, or several for ``max_gap``."""
        return 0.0 if self._weight_name is None else getattr(self, self._weight_name)

    @property
    def _lists(self) -> bool:
        """Whether the user has listed the weights to choose from."""
        listed = isinstance(self._weight, Sequence | np.ndarray)
        return listed and not isinstance(self._weight, str)

    @property
    def _candidates(self) -> Sequence[float]:
        """The weights to train with: one, or those that ``max_gap`` chooses from."""
        if self.max_gap is None:
            if self._lists:
                raise InputError(
                    f"{self._weight_name} has several values, but only max_gap chooses among "
                    f"them. Set max_gap, or pass one {self._weight_name}.",
                    parameter=self._weight_name,
                )
            return [self._weight]
        if self._lists:
            return list(self._weight)
        check_weights(self._weight_name or "fairness_weight", [self._weight], self._weight_range)
        own = self._choice_weights or self.default_weights
        return own if 0.0 in own or not self._zero_is_plain else (0.0, *own)

    def _class_candidates(self, weights: Sequence[float]) -> Sequence[float]:
        """Return the weights to train with for several classes."""
        return weights

    @property
    def _gap_measure(self) -> str:
        """The gap that ``max_gap`` bounds by default."""
        if not self._outcome.decides:
            return "mean_parity_gap"
        return read_criterion(self.criterion).gap_measure

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        """Raise an error that names the first parameter of a wrong type or size."""
        if self._weight_name is None and np.any(weights):
            raise InputError(
                f"{type(self).__name__} has no fairness weight, so it has no path. Pass another "
                "estimator to fairness_path."
            )
        check_weights(self._weight_name or "fairness_weight", weights, self._weight_range)
        check_flag("sensitive_at_prediction", self.sensitive_at_prediction)
        read_small_groups(self.small_groups)
        read_criterion(self.criterion)
        named = [self.given] if isinstance(self.given, str) else self.given
        if named is not None and not (
            isinstance(named, list | tuple) and all(isinstance(name, str) for name in named)
        ):
            raise InputError(
                f"given must name columns of X, so that new rows have them too; got {named!r}. "
                "Pass a name, or a list of names.",
                parameter="given",
            )
        if coupling is not None and not isinstance(self, MatchesPeople):
            raise CouplingError(
                f"A coupling was given, but {type(self).__name__} does not match people. Leave "
                "coupling out."
            )

    def _encoder(self) -> Any:
        """Return the encoder, which turns X into numbers."""
        return self.encoder

    def _reader(self) -> Reader:
        """Return a reader that has seen no table yet."""
        return Reader(
            type(self).__name__,
            self._outcome,
            self.sensitive_column,
            self.sensitive_at_prediction,
            self._encoder(),
            self._sees,
            self.small_groups,
            unknown=self.unknown,
            several=self._several,
            estimated=self._estimated,
            given=self.given,
            similarity=self.similarity,
        )

    def _learn(
        self, people: People, weights: Sequence[float], coupling: Coupling | None
    ) -> Sequence[Scorer]:
        """Return one scorer per weight."""
        raise NotImplementedError

    def _prepare(self, people: People, coupling: Coupling | None) -> Prepared:
        """Return what trains scorers when they are asked for."""
        return Prepared(lambda weights: self._learn(people, weights, coupling))

    def _penalty(self, people: People, coupling: Coupling | None) -> Any:
        """Return the penalty on these people, which knows whom it compares."""
        raise NotImplementedError

    def _match(self, people: People) -> Coupling:
        """Return a matching of held-out people, for the matched gap."""
        raise InputError(
            f"{type(self).__name__} matches nobody, so matched_parity_gap cannot be its "
            "gap_measure. Choose another gap_measure.",
            parameter="gap_measure",
        )

    def _fitted(self, weight: float, known: dict[str, Any]) -> Self:
        """Return a copy with this weight and with these learned attributes."""
        model: Self = clone(self)
        model._set_weight(weight)
        model._adopt({**known, "fairness_weight_": float(weight)})
        return model

    def _set_weight(self, weight: float) -> None:
        # An equal weight keeps the type that it was given with, which may be int.
        if self._weight_name is not None and not np.array_equal(self._weight, weight):
            self.set_params(**{self._weight_name: float(weight)})

    def _adopt(self, known: dict[str, Any]) -> None:
        """Take over learned attributes, and delete those that were learned before."""
        for name in learned(self):
            delattr(self, name)
        self.__dict__.update(known)

    # New rows

    def _inputs(self, X: Any, sensitive_features: ArrayLike | None) -> Any:
        """Return what the learner sees of new rows; all models of one reader see the same."""
        check_is_fitted(self)
        refuse_records(X)
        # Compare the column names with those in fit, as scikit-learn does. Encoders do so too.
        if self.reader_.encoder_ is None and table_width(X) == self.reader_.n_features_in_:
            validate_data(self, X, skip_check_array=True, reset=False)
        return self.reader_.inputs(*self.reader_.read_new(X, sensitive_features))

    def _scores(self, inputs: Any) -> FloatArray:
        """Return the scores of rows that `_inputs` has read."""
        scores: FloatArray = self.scorer_.scores(inputs)
        return scores

    # Saving

    def save(self, path: str | Path) -> Path:
        """Write the model to a folder, without pickling; `fairmatch.load` reads it back.

        The models that ``max_gap`` did not choose are left out: a loaded model has no ``path_``
        and no ``validation_curve_``.

        Parameters
        ----------
        path : str or Path
            The folder. It must be new, empty, or hold a saved model, which is then replaced.

        Returns
        -------
        Path
            The folder.
        """
        return save_model(self, path)

    def _get_state(self) -> State:
        """Return the state to save: what was learned, as bytes and plain values."""
        state: State = self.scorer_.state()
        known = {"fairness_weight": self.fairness_weight_, **self.reader_.facts()}
        if self.calibration_ is not None:
            known["calibration"] = self.calibration_.facts()
        return State(state.file, state.content, {**known, **state.facts})

    def _set_state(self, content: bytes, facts: dict[str, Any]) -> None:
        """Restore what was saved; raise an error if it is damaged."""
        reader = self._reader()
        weight = number_from(facts["fairness_weight"], "fairness_weight", least=0.0)
        check_choice(self)
        self._check([weight, *self._candidates], None)
        reader.restore(facts)
        scorer = self._restore(content, facts, reader)
        known = {**reader.attributes(), **scorer.attributes(), "fairness_weight_": weight}
        if self.calibrate:
            own = (reader.groups_, reader.attributes_) if reader.at_prediction else ((None,),)
            known["calibration_"] = ScoreCalibration.restored(facts.get("calibration"), *own)
        self._adopt(known)

    def _restore(self, content: bytes, facts: dict[str, Any], reader: Reader) -> Scorer:
        """Return the scorer of a saved state; raise an error if it is damaged."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False, repr=False)
class MatchesPeople(FairEstimator):
    """Estimators that match people, with the parameters of the matching."""

    _estimated: ClassVar[bool] = True
    _searches: ClassVar[bool] = True
    # The names of the maps that ``transport`` may be.
    _maps: ClassVar[tuple[str, ...]] = ("marginal", "joint")
    # Whether a matcher with a ``batch_size`` matches anew in every step of the training.
    _matches_anew: ClassVar[bool] = False

    transport: str | Matcher = "marginal"
    fairness_weight: float | Sequence[float] = 1.0
    reference: Any = None
    similarity: Any = None
    match_rows: int | str | None = "auto"

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        self._transport().check(coupling)

    def _transport(self) -> Transport:
        """Return how people are matched."""
        return Transport(
            self.transport,
            self._outcome,
            self.criterion,
            self.reference,
            names=self._maps,
            unseen=self._unseen_scores,
            fresh=self._matches_anew,
            match_rows=self.match_rows,
            random_state=self.random_state,
        )

    def _unseen_scores(self, people: People) -> FloatArray:
        """Return scores by models that have not seen the row, for the map "predicted"."""
        raise NotImplementedError

    def _penalty(self, people: People, coupling: Coupling | None) -> Any:
        return self._transport().penalty(people, coupling)

    def _match(self, people: People) -> Coupling:
        return self._transport().match(people)


@dataclass(kw_only=True, eq=False, repr=False)
class ChoosesWeight(FairEstimator):
    """The parameters of estimators that choose their weight by ``max_gap``."""

    given: str | Sequence[str] | None = None
    max_gap: float | None = None
    gap_measure: str | None = None
    validation_size: float = 0.2
    confidence: float | None = None
    scoring: Any = None
    strict: bool = False
    sensitive_column: Columns = None
    sensitive_at_prediction: bool = True
    small_groups: SmallGroups = "warn"
    unknown: str = "ignore"
    random_state: Any = None


Estimator = TypeVar("Estimator", bound=type[FairEstimator])
_SECTION = r"(?<=^{0}\n{1}\n).*?(?=\n\n\w+\n---|\Z)"


def documented(estimator: Estimator) -> Estimator:
    """Complete a docstring with the descriptions of the bases.

    Parameters are in the order of the signature; the attributes of bases follow.
    """
    shown = cleandoc(estimator.__doc__ or "")
    for title in ("Parameters", "Attributes"):
        section = re.compile(_SECTION.format(title, "-" * len(title)), re.M | re.S)
        entries: dict[str, str] = {}
        for base in estimator.__mro__:
            described = section.search(cleandoc(vars(base).get("__doc__") or ""))
            for entry in re.split(r"\n(?=\S)", described[0]) if described else ():
                entries.setdefault(entry.partition(" :")[0], entry)
        names = signature(estimator).parameters if title == "Parameters" else entries
        found = "\n".join(entries[name] for name in names if name in entries)
        # A function, because a backslash of an entry is no escape.
        shown = section.sub(lambda _, found=found: found, shown)  # type: ignore[misc]
    estimator.__doc__ = shown
    return estimator


def learned(model: FairEstimator) -> dict[str, Any]:
    """Return the learned attributes of an estimator: those that end with an underscore."""
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


# The site as `make docs` builds it in a clone.
_BUILT = Path(__file__).parents[3] / "docs" / "_build" / "html"


def page_of(estimator: type) -> str:
    """Return the address of an estimator's page, or "" if there is no site.

    The page is on the site that the environment variable ``FAIRMATCH_DOCS`` names, which is an
    address or a folder. Without the variable, it is on the site that was built in this clone.

    Examples
    --------
    >>> class Own: ...
    >>> page_of(Own)
    ''
    """
    if not estimator.__module__.startswith("fairmatch."):
        return ""
    name = f"reference/generated/fairmatch.{estimator.__name__}.html"
    given = os.environ.get("FAIRMATCH_DOCS", "")
    if "://" in given:
        return f"{given.rstrip('/')}/{name}"
    page = Path(given or _BUILT) / name
    return page.resolve().as_uri() if page.is_file() else ""


_VALIDATION = ("sklearn.model_selection._validation", "_fit_and_score")


def refuse_lost_groups(who: str) -> None:
    """Raise if cross-validation passes the groups to ``fit`` but not to ``predict``.

    Without metadata routing, scikit-learn passes ``params`` to ``fit`` only. With routing, its
    scorers call ``predict`` without them (scikit-learn#27977). Scoring then fails because the
    groups are missing, and scikit-learn reports scores of NaN.
    """
    routed = get_config()["enable_metadata_routing"]
    frame = sys._getframe(1)
    # Code outside scikit-learn and fairmatch can pass the groups on itself, so the search stops.
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        if (frame.f_globals["__name__"], frame.f_code.co_name) == _VALIDATION:
            if routed and not _loses_groups(frame.f_locals.get("scorer")):
                return
            ways = (
                "leave scoring= out, because the model's own score gets the groups"
                if routed
                else "turn routing on (sklearn.set_config(enable_metadata_routing=True))"
            )
            scorer = ", because scikit-learn's scorers do not pass them on" * routed
            raise InputError(
                f"This cross-validation passes sensitive_features to {who}.fit but not to "
                f"predict{scorer}, so no score could be computed. Put the groups into X "
                f"(sensitive_column=), or {ways}, or fit a model that needs no groups to predict "
                "(sensitive_at_prediction=False)."
            )
        frame = frame.f_back


def _loses_groups(scorer: Any) -> bool:
    """Return whether a scorer of scikit-learn is among these; a function may know the groups."""
    several = getattr(scorer, "_scorers", scorer)
    every = several.values() if isinstance(several, dict) else [several]
    return any(hasattr(one, "_score_func") for one in every)


def _is_inside(module: str) -> bool:
    return module.split(".")[0] in ("fairmatch", "sklearn", "paper")


class FairClassifier(ClassifierMixin, FairEstimator):  # type: ignore[misc]
    """A classifier of two classes, or of more where the method allows it.

    Parameters
    ----------
    calibrate : bool, default=False
        Whether to calibrate the scores by group on held-out rows, as `fit_calibration` does. No
        decision changes, so a bound on decisions still holds. With a bound on scores it raises an
        error. ``sensitive_at_prediction=False`` has one map for everybody.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels in sorted order; of two, the second is the positive one.
    calibration_ : ScoreCalibration or None
        With ``calibrate``: the maps of the scores. Then ``path_`` and ``validation_curve_`` are
        there without ``max_gap`` too, and the curve has the largest ``calibrated_error`` of a
        group after the calibration.
    """

    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}

    classes_: NDArray[Any]

    @property
    def _outcome(self) -> Outcome:
        reader = vars(self).get("reader_")
        return PROBABILITY if reader is None else reader.outcome

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._several
        return tags

    def predict_proba(
        self, X: Any, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each class.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows, n_classes)
            The probabilities, with columns in the order of ``classes_``.
        """
        positive = self._scores(self._inputs(X, sensitive_features))
        if positive.ndim == 2:
            return positive
        if self.calibration_ is not None:
            codes = self.reader_.read_new(X, sensitive_features)[1]
            positive = self.calibration_.moved(positive, codes)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the class with the largest probability; ties go to the later class.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows,)
            One of ``classes_`` for every row.
        """
        chances = self.predict_proba(X, sensitive_features=sensitive_features)
        chosen = decided_classes(chances if chances.shape[1] > 2 else chances[:, 1])
        decided: NDArray[Any] = self.classes_[chosen]
        return decided

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Return the accuracy on a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        float
            The weighted share of right decisions.
        """
        decided = self.predict(X, sensitive_features=sensitive_features)
        labels = read_column(y, "y")
        if len(labels) != len(decided):
            raise InputError(
                f"y has {len(labels)} rows, X has {len(decided)}. Pass one label for every row."
            )
        weights = read_weights(sample_weight, n_rows=len(labels))
        return float(np.average(decided == labels, weights=weights))


class FairRegressor(RegressorMixin, FairEstimator):  # type: ignore[misc]
    """A regressor of one real target.

    Parameters
    ----------
    max_gap : float, optional
        Largest allowed gap, in units of the target, or in standard deviations if the measure is
        relative. The classifier of the same method describes how a model is chosen with it.
    gap_measure : str, optional
        The gap that ``max_gap`` bounds, a name in ``REAL_GAPS`` of `fairmatch.measures.registry`.
        By default it is "mean_parity_gap".
    scoring : str or callable, default="neg_root_mean_squared_error"
        The score by which ``max_gap`` chooses: the name of a scikit-learn scorer, or a callable
        (estimator, X, y), whose labels are the targets. It gets the weights if it takes
        ``sample_weight``.

    Attributes
    ----------
    target_mean_, target_scale_ : float
        Mean and standard deviation of the target in the training rows.
    """

    _curve_weights: ClassVar[tuple[float, ...]] = REGRESSION_WEIGHTS
    target_mean_: float
    target_scale_: float

    @property
    def _outcome(self) -> Outcome:
        return NUMBER

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> FloatArray:
        """Return the prediction of every row, in units of the target.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        array of shape (n_rows,)
            The predictions.
        """
        return self._scores(self._inputs(X, sensitive_features))

    def _scores(self, inputs: Any) -> FloatArray:
        """Return the predictions of rows that `_inputs` has read, in units of the target."""
        return np.asarray(self.target_mean_ + self.target_scale_ * super()._scores(inputs))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        r"""Return the coefficient of determination, :math:`R^2`, on a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        y : array-like of shape (n_rows,)
            Their targets.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        sensitive_features : array-like of shape (n_rows,) or (n_rows, n_attributes), optional
            Group of every row, unless it is a column of X or the model does not need it.

        Returns
        -------
        float
            1 for perfect predictions; NaN if the targets are constant.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        wanted = read_targets(y)
        if len(wanted) != len(predicted):
            raise InputError(
                f"y has {len(wanted)} rows, X has {len(predicted)}. Pass one number for every row."
            )
        return errors_of(predicted, wanted, read_weights(sample_weight, n_rows=len(wanted)))["r2"]
