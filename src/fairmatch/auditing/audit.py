"""Audits of any model's scores: how groups are treated, and which people are treated alike."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor

from fairmatch import __version__
from fairmatch.auditing.classes import class_facts, read_models
from fairmatch.auditing.conditional import conditional_facts
from fairmatch.auditing.estimated import estimated_facts
from fairmatch.auditing.facts import (
    About,
    Audit,
    Comparison,
    GroupFacts,
    Individuals,
    Matching,
    ModelPair,
    Provenance,
    Spread,
    remember_people,
)
from fairmatch.auditing.gaps import (
    base_label,
    describe_groups,
    few_values,
    matched_excess,
    score_edges,
    selection_ratio,
    take_gaps,
)
from fairmatch.auditing.impact import impact_tables
from fairmatch.auditing.matchings import PairMatcher, join_pairs, joined, match_across
from fairmatch.auditing.people import (
    MANY_GROUPS,
    Audited,
    AuditSettings,
    ClassScores,
    Roster,
    Sample,
    column_bytes,
    cut_at_rank,
    only_two,
    read_roster,
    read_row_count,
    read_top,
    refuse_missing,
)
from fairmatch.auditing.periods import (
    part_facts,
    period_facts,
    read_periods,
    read_stages,
    stage_facts,
    undated_note,
)
from fairmatch.auditing.subsets import HALF_SPACE_ROWS, Part, scan_subsets
from fairmatch.auditing.unknown import unknown_ranges
from fairmatch.exceptions import InputError
from fairmatch.learning.choice import FairnessPath
from fairmatch.matching.fair import match_quantiles
from fairmatch.measures.changes import favoured_groups, rank_correlation
from fairmatch.measures.distributions import Settings
from fairmatch.measures.estimated import LEAST
from fairmatch.measures.gaps import standard_deviation
from fairmatch.measures.intervals import SCORE_BINS
from fairmatch.measures.numbers import NumberDependence, dependence
from fairmatch.people.bands import Bands
from fairmatch.people.checks import (
    FloatArray,
    check_length,
    is_missing,
    read_column,
    read_numbers,
    read_scores,
    refuse_other_order,
)
from fairmatch.people.columns import Column
from fairmatch.people.groups import SMALL, read_criterion
from fairmatch.people.outcome import NUMBER
from fairmatch.people.similarity import AUTO
from fairmatch.people.weights import Weights, read_row_weights

# A table with more numbers than this is not encoded whole.
_MOST_CELLS = 50_000_000
# Where ties leave more than this share of the mass open, the cost of matching everybody is not
# stated.
_FEW_TIES = 0.01
# Up to this many pairs of groups are matched with the requested number of people.
_FULL_PAIRS = 2


def audit(
    y_score: Any = None,
    *,
    sensitive_features: ArrayLike,
    X: Any = None,
    y_true: ArrayLike | None = None,
    by: Any = None,
    stages: Any = None,
    sample_weight: ArrayLike | None = None,
    weight_kind: str = "survey",
    ids: ArrayLike | None = None,
    given: Any = None,
    similarity: Any = AUTO,
    categorical: Collection[str] = (),
    known: ArrayLike | None = None,
    keep: Collection[str] = (),
    kind: str | None = None,
    threshold: float | None = None,
    top: int | float | str | None = None,
    score_range: tuple[float, float] | None = None,
    favourable: str | Sequence[Any] = "high",
    classes: Sequence[Any] | None = None,
    outcome: str | None = None,
    pos_label: Any = 1,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    n_sample: int = 4096,
    n_subsets: int = 1000,
    min_group_size: int = SMALL,
    reference: Any = None,
    random_state: int = 0,
    model_name: str = "model",
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    purpose: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Audit:
    r"""Return the facts about how a model treats groups, and which people it treats alike.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,) or (n_rows, n_classes), or a fitted estimator
        Scores in [0, 1] or 0/1 decisions of any model, probabilities of several classes, or a
        classifier with ``predict_proba``, which then scores ``X``. With ``kind="number"`` these are
        predictions, or a regressor with ``predict``. Rows without a score (NaN) are counted and
        left out; more than 20 % of them raise an error. Leave it out with ``stages``.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. With several attributes, the groups are the combinations that occur, and
        each attribute is described by itself too. People whose value is missing, or reads
        "unknown", form the group "unknown", which is shown but not compared. With estimated groups
        (`fairmatch.group_probabilities`) gaps have bounds, and nobody is matched.
    X : table or array of shape (n_rows, n_columns), optional
        The features of the people: a pandas, polars or pyarrow table, or a NumPy array. Missing
        values are allowed. Without X there are gaps, intervals and the matching by score quantiles.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes, for error rates, calibration and the joint map. With
        ``kind="number"`` these are the numbers to predict. Relative gaps are in units of their
        standard deviation. Rows without a label are counted and left out of what needs labels; more
        than 20 % of them raise an error.
    by : array-like of shape (n_rows,), or name of a column of X, optional
        Period of every row, such as the year. The rates, ratios and gaps of each period are then
        stated too, with a test of the change between consecutive periods.
    stages : table, or mapping of names to array-likes of shape (n_rows,), optional
        Decisions as 0 and 1, one column for each stage of a procedure in their order, such as
        applied, interviewed and hired. The audit is about getting from the first stage to the last,
        and also has the rates and ratios of each stage. A missing value means 0.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. Rows of weight 0 are left out of everything.
    weight_kind : {"survey", "counts"}, default="survey"
        What the weights are. A survey weight says how much a person counts; the intervals are then
        based on Kish's effective number of people. A count says how many people a row of an
        aggregated table stands for.
    ids : array-like of shape (n_rows,), optional
        Identifier of every row. Rows with the same identifier are one person: intervals, tests and
        the halves of the subset search are then formed by person. By default every row is one
        person.
    given : names of columns of X, array-like of shape (n_rows,), or table, optional
        Factors within whose levels people are compared too, such as job title and grade. A number
        with more than ten different values is cut into five bands of about as many rows.
    similarity : "auto", "relevance", None, list of columns, mapping or array, default="auto"
        What makes two people alike in matchings. "relevance" weighs columns by how much they matter
        to ``y_true``. None counts every column by its range. "auto" is "relevance" with labels that
        show it, and None otherwise. A list counts only these columns, and a mapping gives them
        weights. An array has one row per person, such as an embedding, and needs no ``X``.
    categorical : collection of str, default=()
        Columns of X whose numbers are codes, such as occupation 4510. They are read as categories.
    known : array-like of shape (n_rows,), optional
        With estimated groups: the true group of some people, and None for the others. They must be
        a random sample.
    keep : collection of str, default=()
        Columns of X to keep although they identify people or reveal their group. Such a column
        raises an error unless it is listed here.
    kind : {"probability", "number"}, optional
        What the scores are. With "number" they are predictions in units of the target, which select
        nobody. The audit then has gaps of means, of distributions and of matched people, both in
        units and relative to a standard deviation. It has no rates, ratios or decisions. By default
        it is "number" if ``y_score`` is a regressor, and "probability" otherwise.
    threshold : float, optional
        A person with a score at or above the threshold is selected. With ``favourable="low"`` a
        person with a score below it is selected. It is 0.5 by default, and must be given with
        ``score_range``.
    top : int, float or str, optional
        Select people by rank instead of a threshold: the best 100 (``top=100``), or the best tenth
        (``top=0.1`` or ``top="10%"``). People who tie with the last one selected are selected too,
        and a note counts them. The intervals take the score at the cut as given.
    score_range : tuple of two float, optional
        The least and the greatest possible score, if scores are not probabilities, such as (1, 10)
        for deciles. The threshold is then in that range, and so are means, gaps of scores and
        charts. The share of positive labels is stated for each score instead of calibration.
    favourable : {"high", "low"} or a list of classes, default="high"
        Which scores are good for a person. Rates, ratios and gaps are of the favourable outcome.
        With several classes, name the good ones.
        With "low" the favourable label is the one that is not ``pos_label``, and the true
        positive rate is the share of people with that label who are selected.
    classes : sequence, optional
        With several classes, their order from the lowest to the highest, which is also the order of
        the columns of ``y_score``. Without it the classes have no order.
    outcome : str, optional
        Words for the favourable outcome, such as "hired" or "granted bail". The default is
        "selected", or "not flagged" with ``favourable="low"``.
    pos_label : default=1
        The label that a high score predicts.
    confidence : float, default=0.95
        Level of the intervals.
    n_resamples : int, default=1000
        Number of bootstrap resamples, and of permutations.
    n_sample : int, default=4096
        How many people of each group are drawn for the matchings. A smaller group is used whole.
        With more than three groups fewer people are drawn, which keeps the time from growing with
        the number of pairs.
    n_subsets : int, default=1000
        Number of random half-spaces to examine.
    min_group_size : int, default=30
        The audit states nothing about a group of fewer people, and says which group it is.
    reference : a group label, optional
        The group that every other group is compared with: in impact ratios, where the default is
        the group with the highest selection rate among those with 2 % of the people and
        ``min_group_size`` people, and in matchings and pairs, where the default is the largest.
    random_state : int, default=0
        Seed. The same seed gives the same audit.
    model_name : str, default="model"
        What to call the model.
    title, author, date, purpose : str, optional
        Texts for the head of the report. They are kept as they are given.
    progress : callable, optional
        Called with the name of each step before it starts.

    Returns
    -------
    Audit
        The facts about the model.

    Notes
    -----
    The model's own matching :math:`T^f` (`fairmatch.fair_matching`) is compared with the nearest
    matching and with a random one, on the same sample:

    .. math:: \frac{C(T^f) - C_{\min}}{C_{\mathrm{random}} - C_{\min}},
              \qquad C(T) = E \|X - T(X)\|^2,

    which is 0 for a matching as near as possible, and 1 for one that is no better than random.
    Numbers are scaled to [0, 1], and two different categories are at squared distance 2, as in
    `fairmatch.people.encoding.TableEncoder`. A gap is a fact about these people. fairmatch does not
    decide whether it is acceptable.

    Gaps of predictions are in units of the target. Their intervals assume that no prediction lies
    outside the observed range, and that the standard deviation of relative gaps is known.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> gap = found.gap("demographic_parity_gap")
    >>> print(f"{gap.value} [{gap.low:.2f}, {gap.high:.2f}]")
    0.5 [0.33, 0.65]

    Three classes, of which two are good. Gaps and ratios are about getting one of them, and
    ``classes`` describes every class by itself:

    >>> bands = np.eye(3)[[0, 1, 1, 2] * 30]
    >>> found = audit(bands, sensitive_features=["a", "a", "b", "b"] * 30,
    ...               classes=["Low", "Medium", "High"], favourable=["Low", "Medium"])
    >>> found.outcome, found.gap("demographic_parity_gap").value
    ('given the class Low or Medium', 0.5)
    >>> [round(group.shares["Medium"].value, 2) for group in found.classes.groups]
    [0.5, 0.5]

    Stages of a procedure. The ratio of each is in `Audit.stages`:

    >>> steps = {"applied": [1] * 160, "invited": [1, 0] * 80, "hired": [1, 0, 0, 0] * 40}
    >>> found = audit(stages=steps, sensitive_features=["a", "a", "b", "b"] * 40)
    >>> [(one.stage, one.among, one.impact[0].categories[1].impact_ratio.value)
    ...  for one in found.stages]
    [('invited', 'applied', 1.0), ('hired', 'invited', 0.0), ('hired', 'applied', 0.0)]

    Predictions of hours:

    >>> hours = audit([30.0, 40.0, 42.0, 48.0] * 20, sensitive_features=["f", "f", "m", "m"] * 20,
    ...               kind="number")
    >>> print(f"{hours.gap('mean_parity_gap').value:.2f} hours, threshold {hours.threshold}")
    10.00 hours, threshold None
    """
    asked = dict(locals())  # the arguments, and nothing else yet
    names, reached = ([], []) if stages is None else read_stages(stages)
    if reached:
        _refuse_given(
            "the decisions of stages say who is selected.",
            y_score=y_score,
            threshold=threshold,
            top=top,
            score_range=score_range,
            favourable=None if favourable == "high" else favourable,
        )
        y_score = reached[-1].astype(float)
        asked["outcome"] = names[-1] if outcome is None else outcome
    elif y_score is None:
        raise InputError("An audit needs y_score, or stages. Pass one.", parameter="y_score")
    (data,) = _open({model_name: y_score}, asked, entered=reached[0] if reached else None)
    roster = data.roster
    if data.groups.memberships is not None:
        if data.classes is not None:
            raise InputError(
                "Probabilities of groups and several classes do not combine in an audit. Audit one "
                "class against the rest, or use fairmatch.measures.",
                parameter="sensitive_features",
            )
        _refuse_given(
            "groups are probabilities. The intervals and tests within strata need known groups; "
            "gaps such as fairmatch.measures.demographic_parity_gap take both.",
            given=given,
        )
        _refuse_given(
            "groups are probabilities. People are matched only if their groups are known.",
            similarity=None if isinstance(similarity, str) and similarity == AUTO else similarity,
        )
    elif known is not None:
        raise InputError(
            "known was given, but sensitive_features holds the groups themselves. Leave known "
            "out, or pass fairmatch.group_probabilities(…) as sensitive_features.",
            parameter="known",
        )
    found = _build(data, asked)
    if data.groups.memberships is not None:
        return found
    if reached:
        found = replace(
            found, stages=stage_facts(data, names, [own[roster.positions] for own in reached])
        )
    if by is not None:
        periods = read_periods(by, X, roster.n_given).take(roster.positions)
        parts, changes = period_facts(data, periods)
        notes = (*found.notes, *undated_note(data, periods))
        found = replace(found, periods=parts, changes=changes, notes=notes)
    plain = None if data.classes is not None else plain_model(y_score)
    scored = None if plain is None else partial(_scores_of, plain, roster, data.settings)
    remember_people(found, roster.people, data.scores, scored)
    return found


def class_table(model: Any, X: Any, sensitive_features: Any, *, named: bool) -> Any:
    """Return the probabilities of a classifier of several classes; anything else as it is."""
    learned = getattr(model, "classes_", ())
    if not (named or len(learned) > 2) or not hasattr(model, "predict_proba"):
        return model
    chances = called(model, "predict_proba", X, sensitive_features)
    return pd.DataFrame(chances, columns=list(learned))


def compare_models(
    y_scores: Mapping[str, Any] | FairnessPath,
    *,
    sensitive_features: ArrayLike,
    X: Any = None,
    y_true: ArrayLike | None = None,
    privileged: Hashable | Iterable[Hashable] | None = None,
    **settings: Any,
) -> Comparison:
    """Audit two or more models on the same people, and compare them with the first.

    Parameters
    ----------
    y_scores : mapping, or FairnessPath
        Name of each model to its scores, or to a fitted estimator; or all models of a path. The
        first model is the reference, usually the one without a fairness constraint.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    X : table or array of shape (n_rows, n_columns), optional
        The features of the people.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. With ``kind="number"`` these are the numbers to predict.
    privileged : a group label, or a list of them, optional
        The favoured groups. They decide which flips are undesirable.
    **settings
        Further arguments of `fairmatch.audit`, such as ``sample_weight``, ``given``, ``threshold``
        or ``confidence``. They hold for all models. With features, large tables take a minute;
        ``progress=print`` shows every step.

    Returns
    -------
    Comparison
        The audit of each model, and how each model differs from the first.

    Notes
    -----
    All models are audited on the same sample, so their transport costs can be compared. Rank
    agreement and undesirable flips are those of Appendix E.3 of the paper.

    Examples
    --------
    >>> from fairmatch import compare_models
    >>> groups = ["a", "a", "b", "b"] * 20
    >>> models = {"unfair": [0.9, 0.2, 0.6, 0.7] * 20, "fair": [0.9, 0.2, 0.1, 0.8] * 20}
    >>> found = compare_models(models, sensitive_features=groups, privileged="b")
    >>> found.pairs[0].undesirable_flips
    {'a': 0, 'b': 0}
    >>> found.pairs[0].decisions["b"]
    (0, 20, 0, 20)
    """
    for name in settings.keys() - inspect.signature(audit).parameters.keys():
        raise TypeError(f"compare_models() got an unexpected keyword argument {name!r}")
    for name in settings.keys() & {"model_name", "known", "by", "stages"}:
        raise InputError(
            f"{name} is for a single model, but compare_models takes several. Audit each of them "
            "with fairmatch.audit.",
            parameter=name,
        )
    if isinstance(y_scores, FairnessPath):
        y_scores = y_scores.named()
    if len(y_scores) < 2:
        raise InputError(
            f"A comparison needs at least two models, got {len(y_scores)}. Add a model, or audit a "
            "single one with fairmatch.audit.",
            parameter="y_scores",
        )
    given = {"sensitive_features": sensitive_features, "X": X, "y_true": y_true, **settings}
    asked = _defaults() | given
    models = _open(y_scores, asked, privileged=privileged)
    reference, groups = models[0], models[0].groups
    if groups.memberships is not None:
        raise InputError(
            "Groups are estimated, but a comparison of models needs known groups. Audit each "
            "model by itself with fairmatch.audit.",
            parameter="sensitive_features",
        )
    favoured = None if privileged is None else favoured_groups(groups, privileged)
    return Comparison(
        audits=tuple(_build(data, _with_name(asked, data.name)) for data in models),
        pairs=tuple(_compare(data, reference, favoured) for data in models[1:]),
        privileged=None
        if favoured is None
        else "; ".join(str(groups.labels[code]) for code in sorted(favoured)),
    )


def audit_counts(
    counts: Mapping[str, Any], people: Mapping[str, Any], settings: Mapping[str, Any]
) -> Audit:
    """Return the audit of people who were counted, some of whom were drawn.

    ``counts``, ``people`` and ``settings``, which holds for both, have arguments of `audit`. What
    is stated of single people is that of the people drawn.
    """
    everybody, drawn = ({**_defaults(), **settings, **own} for own in (counts, people))
    ((data,), (sample,)) = (
        _open({own["model_name"]: own["y_score"]}, own) for own in (everybody, drawn)
    )
    return _build(data, everybody, replace(sample, whole=data.reference))


def _defaults() -> dict[str, Any]:
    """Return the arguments of `audit` where nothing is passed."""
    return {name: own.default for name, own in inspect.signature(audit).parameters.items()}


def _open(
    y_scores: Mapping[str, Any],
    asked: Mapping[str, Any],
    *,
    privileged: Any = None,
    entered: NDArray[np.bool_] | None = None,
) -> list[Audited]:
    """Read the people, and the scores of models. ``asked`` holds the arguments of `audit`.

    Scores are read before labels. If predictions and a target are on another scale, an error about
    the scores explains more than one about labels.
    """
    X, sensitive, y_true = asked["X"], asked["sensitive_features"], asked["y_true"]
    one = len(y_scores) == 1
    given = {"y_score" if one else f"y_scores[{name!r}]": own for name, own in y_scores.items()}
    columns = {name: asked[name] for name in ("sample_weight", "ids")}
    refuse_other_order(**given, X=X, sensitive_features=sensitive, y_true=y_true, **columns)
    rules = {name: asked[name] for name in ("threshold", "top", "score_range")}
    favourable, outcome, pos_label = asked["favourable"], asked["outcome"], asked["pos_label"]
    several: dict[str, ClassScores] = {}
    if asked["kind"] in (None, "probability"):
        classes = asked["classes"]
        named = classes is not None or not isinstance(favourable, str)
        tables = {
            name: class_table(own, X, sensitive, named=named) for name, own in y_scores.items()
        }
        y_scores, several, pos_label = read_models(tables, classes, favourable, y_true, pos_label)
        favourable = favourable if isinstance(favourable, str) else "high"
    if several:
        _refuse_given("the largest probability of several classes decides.", **rules)
        first = next(iter(several.values()))
        y_scores = {name: own.favours(own.decided) for name, own in several.items()}
        y_true, pos_label = None if first.codes is None else first.favours(first.codes), 1
        outcome = first.words if outcome is None else outcome
    first_model, reference = next(iter(y_scores.values())), asked["reference"]
    is_number = hasattr(first_model, "predict") and is_regressor(first_model)
    chosen = read_selection(**rules) | {
        "favourable": favourable,
        "outcome": outcome,
        "kind": asked["kind"] or ("number" if is_number else "probability"),
        "reference": None if reference is None else str(reference),
    }
    plain = {own.name: asked[own.name] for own in fields(AuditSettings)}
    settings = AuditSettings(**plain | chosen)
    for name, own, default in (("pos_label", pos_label, 1), ("privileged", privileged, None)):
        if not settings.scores.decides and own not in (default, None):
            raise InputError(
                f"{name}={own!r} was given with kind='number', but predictions in units of the "
                f"target have neither classes nor decisions. Leave {name} out.",
                parameter=name,
            )
    arrays = {
        name: read_column(own, "y_score")
        for name, own in y_scores.items()
        if not (hasattr(own, "predict") or hasattr(own, "predict_proba") or callable(own))
    }
    n_given = read_row_count(sensitive)
    weights = read_row_weights(asked["sample_weight"], settings.weight_kind, n_given)
    scored, unscored = _scored(list(arrays.values()), weights), "have no score"
    if entered is not None:
        scored, unscored = entered, "are not in the first stage"
    read = {name: _read_scores(own, settings, scored) for name, own in arrays.items()}
    inside = [getattr(model, "sensitive_column", None) for model in y_scores.values()]
    roster = read_roster(
        settings,
        sensitive,
        X=X,
        y_true=y_true,
        weights=weights,
        ids=asked["ids"],
        pos_label=pos_label,
        sensitive_column=next((own for own in inside if own is not None), None),
        scored=scored,
        unscored=unscored,
        **{name: asked[name] for name in ("keep", "given", "similarity", "categorical")},
    )
    scores: dict[str, FloatArray] = {}
    for name, model in y_scores.items():
        if name in read:
            check_length(read[name], roster.n_given, "y_score")
            scores[name] = read[name][roster.positions]
        else:
            scores[name] = _scores_of(model, roster, settings)
    chances = {name: own.take(roster.positions) for name, own in several.items()}
    roster = roster.ordered(
        [column for own in chances.values() for column in own.scores.T] or list(scores.values())
    )
    return [_audited(roster, name, settings, scores, chances.get(name)) for name in scores]


def read_selection(threshold: float | None, top: Any, score_range: Any) -> dict[str, Any]:
    """Return the settings that say who is selected, or raise if they contradict each other."""
    within = None
    if score_range is not None:
        ends = read_numbers(list(score_range), "score_range")
        if len(ends) != 2 or not (np.isfinite(ends).all() and ends[0] < ends[1]):
            raise InputError(
                "score_range must be the least and the greatest score, such as (1, 10), got "
                f"{score_range!r}.",
                parameter="score_range",
            )
        within = float(ends[0]), float(ends[1])
    if threshold is not None and top is not None:
        raise InputError(
            f"top={top!r} and threshold={threshold!r} were both given, but each says who is "
            "selected. Leave one of them out.",
            parameter="top",
        )
    if threshold is None and top is None and within is not None:
        raise InputError(
            f"score_range={within} was given without a threshold. Pass the score from which people "
            f"are selected, such as threshold={sum(within) / 2:g}, or select by rank, such as "
            "top=100.",
            parameter="threshold",
        )
    return {
        "threshold": 0.5 if threshold is None else threshold,
        "top": read_top(top),
        "score_range": within,
    }


def _scored(scores: Sequence[NDArray[Any]], weights: Weights) -> NDArray[np.bool_] | None:
    """Return which rows have a score of every model, or None if all have."""
    missing = [is_missing(own) for own in scores]
    if not any(own.any() for own in missing) or {len(own) for own in missing} != {weights.n_rows}:
        return None
    anywhere: NDArray[np.bool_] = np.any(missing, axis=0)
    refuse_missing(anywhere, "scores", "y_score", weights)
    return ~anywhere


def _read_scores(
    column: NDArray[Any], settings: AuditSettings, scored: NDArray[np.bool_] | None
) -> FloatArray:
    """Return scores of the kind that is audited, with NaN where one is missing."""
    if scored is not None and not scored.all():
        scores = np.full(len(column), np.nan)
        scores[scored] = _read_scores(np.array(column[scored].tolist()), settings, None)
        return scores
    try:
        scores = settings.scores.read(column)
    except InputError as error:
        values = set(np.unique(column.astype(str)).tolist()) if len(column) else set()
        if len(values) == 2 and (values == {"-1", "1"} or values == {"-1.0", "1.0"}):
            raise InputError(
                "The scores are -1 and 1. If they are decisions and 1 is the good one, pass "
                "(y_score == 1), or --accepted 1 on the command line.",
                parameter="y_score",
            ) from None
        words = {value for value in column.tolist() if isinstance(value, str)}
        if words and len(values) == 2:
            one, other = sorted(values)
            raise InputError(
                f"y_score holds the words {one!r} and {other!r}. Pass decisions of 0 and 1: "
                f"(y_score == {other!r}), or with {one!r}, whichever means yes.",
                parameter="y_score",
            ) from None
        if settings.scores.decides and np.isfinite(read_numbers(column, "y_score")).all():
            ends = (0, 100) if 10.0 < column.max() <= 100.0 else (1, 10)
            raise InputError(
                f"{error} Or pass the range of the scores, such as score_range={ends} with "
                f"threshold={sum(ends) / 2:g}, or kind='number' for predictions in units of the "
                "target.",
                parameter="y_score",
            ) from None
        raise
    within = settings.score_range
    if within is not None and not (scores.min() >= within[0] and scores.max() <= within[1]):
        raise InputError(
            f"y_score has values from {scores.min():g} to {scores.max():g}, outside "
            f"score_range={within}. Pass the range in which all scores can lie.",
            parameter="score_range",
        )
    return scores


def _scores_of(model: Any, roster: Roster, settings: AuditSettings) -> FloatArray:
    """Let a model score the people."""
    method = "predict_proba" if settings.scores.decides else "predict"
    if not hasattr(model, method):
        raise InputError(
            f"{type(model).__name__} has no {method}. Pass its scores in [0, 1], or its 0/1 "
            "decisions, as y_score.",
            parameter="y_score",
        )
    if settings.scores.decides:
        return score_people(model, roster.X, roster.sensitive_features, roster.pos_label)
    return predict_people(model, roster.X, roster.sensitive_features)


def plain_model(model: Any) -> Any:
    """Return the model of weight 0 on the path that ``max_gap`` was chosen on, or None.

    Examples
    --------
    >>> plain_model([0.2, 0.7]) is None
    True
    """
    path = getattr(model, "path_", None)
    return None if path is None else dict(zip(path.weights, path.models, strict=True)).get(0.0)


def score_people(model: Any, X: Any, sensitive_features: Any, pos_label: Any = 1) -> FloatArray:
    """Return a classifier's probability of the positive label for every row.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> score_people(DummyClassifier().fit([[0], [0]], [0, 1]), [[0]], None).tolist()
    [0.5]
    """
    probabilities = called(model, "predict_proba", X, sensitive_features)
    classes = np.asarray(getattr(model, "classes_", (0, 1))).tolist()
    if pos_label not in classes or probabilities.ndim != 2 or probabilities.shape[1] != 2:
        raise InputError(
            f"The estimator knows the classes {classes}. It must have two classes, and "
            f"pos_label={pos_label!r} must be one of them. Pass the pos_label of this model."
        )
    return read_scores(probabilities[:, classes.index(pos_label)])


def predict_people(model: Any, X: Any, sensitive_features: Any) -> FloatArray:
    """Return a regressor's prediction for every row.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> predict_people(DummyRegressor().fit([[0], [0]], [30.0, 40.0]), [[0]], None).tolist()
    [35.0]
    """
    if hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} is a classifier, but kind='number' audits predictions in "
            "units of the target. Pass a regressor, or leave out kind."
        )
    return NUMBER.read(called(model, "predict", X, sensitive_features), name="predict")


def called(model: Any, method: str, X: Any, sensitive_features: Any) -> NDArray[Any]:
    """Call a method of a model on the rows, with the groups if it takes them."""
    if X is None:
        raise InputError(
            "y_score is an estimator and X is None, but an estimator needs X to score the rows. "
            "Pass X.",
            parameter="X",
        )
    call, given = getattr(model, method), {}
    takes = "sensitive_features" in inspect.signature(call).parameters
    if takes and getattr(model, "sensitive_column", None) is None:  # else the groups are in X
        given["sensitive_features"] = sensitive_features
    return np.asarray(call(X, **given))


def _audited(
    roster: Roster,
    name: str,
    settings: AuditSettings,
    every: Mapping[str, FloatArray],
    classes: ClassScores | None,
) -> Audited:
    """Return the people with the scores of one model. All models share the range of scores."""
    scores = every[name]
    within, spread = settings.score_range or (0.0, 1.0), None
    if settings.top is not None:
        cut, _ = cut_at_rank(scores, roster.weights, settings.top, settings.favourable)
        settings = replace(settings, threshold=cut)
    if not settings.scores.decides:
        within, spread = _range(list(every.values())), _spread(roster, scores).value
    measured = Settings(
        settings.threshold, SCORE_BINS, settings.favourable, settings.scores, within, spread
    )
    data = Audited(roster, name, roster.people, scores, settings, measured, classes)
    data.check_reference()
    return data


def _range(predictions: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the range of the predictions of one or several models."""
    low = min(float(own.min()) for own in predictions)
    high = max(float(own.max()) for own in predictions)
    with np.errstate(over="ignore"):
        width = float(np.subtract(high, low))
    if not np.isfinite(width):
        raise InputError(
            f"Predictions run from {low:g} to {high:g}, a range too wide for a number. Pass them "
            "in a larger unit.",
            parameter="y_score",
        )
    return low, high if width else low + 1.0


def _spread(roster: Roster, scores: FloatArray) -> Spread:
    """Return the standard deviation of the target, or of the predictions if there is no target."""
    labels, weights = roster.people.labels, roster.weights
    if labels is None:
        return Spread("predictions", standard_deviation(scores, weights.values))
    known = labels.values[labels.known]
    return Spread("target", standard_deviation(known, weights.take(labels.known).values))


def _with_name(asked: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the arguments with a progress whose steps begin with the name of a model."""
    progress = asked["progress"]
    if progress is None:
        return asked
    return {**asked, "progress": lambda step: progress(f"{name}: {step}")}


def _build(data: Audited, asked: Mapping[str, Any], drawn: Audited | None = None) -> Audit:
    """Return the audit of one model. ``asked`` holds the arguments of `audit`.

    If people were counted, those ``drawn`` are described and matched.
    """
    settings, roster, decides = data.settings, data.roster, data.decides
    is_known, drawn = data.groups.memberships is None, drawn or data
    found = _facts(data, drawn, asked) if is_known else estimated_facts(data, asked)
    return Audit(
        model_name=data.name,
        n_rows=data.weights.people,
        threshold=settings.threshold if decides else None,
        confidence=settings.confidence,
        score_edges=score_edges(data),
        provenance=_provenance(data, drawn.roster),
        n_selected=data.weights.take(data.selected).people if decides else None,
        favourable=settings.favourable,
        outcome=settings.named_outcome,
        about=About(**{name: asked[name] for name in ("title", "author", "date", "purpose")}),
        kind=settings.kind,
        spread=None if decides else _spread(roster, data.scores),
        score_values=few_values(data),
        score_range=settings.score_range,
        **found | {"notes": (*roster.notes(), *found["notes"])},
    )


def _facts(data: Audited, drawn: Audited, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an audit of known groups states, made in steps."""
    settings, roster = data.settings, drawn.roster
    step = asked["progress"] or (lambda name: None)
    step("groups and gaps")
    groups, ratio = describe_groups(data), selection_ratio(data)
    named = zip(data.groups.attributes, data.groups.crossed, strict=True)
    attributes = tuple(part_facts(data.of(own), name) for name, own in named)
    step("matchings")
    # Fewer people are drawn if there are many pairs, to keep the time from growing with them.
    share = min(1.0, np.sqrt(_FULL_PAIRS / max(len(drawn.matched_pairs), 1)))
    sample = roster.sample(max(int(share * settings.n_sample), 1), settings.generator(2))
    matchers = [PairMatcher(drawn, sample, codes) for codes in drawn.matched_pairs]
    matchings = _with_costs_of_all(drawn, matchers)
    if drawn.weights.people < data.weights.people:
        matchings = tuple(replace(own, is_sample=True) for own in matchings)
    excesses = {}
    if roster.is_described and not drawn.refused and len(drawn.compared) <= MANY_GROUPS:
        excesses = {codes: matched_excess(drawn, codes) for codes in drawn.matched_pairs}
    gaps, by_pair = take_gaps(data, excesses)
    gaps, by_pair, unknown = unknown_ranges(data, gaps, by_pair)
    step("subsets")
    subsets = None
    if roster.columns:
        # The sample uses the same random stream, so both hold the same people of a small table.
        part = Part(*roster.draw(HALF_SPACE_ROWS // 2, settings.generator(2)))
        subsets = scan_subsets(drawn, roster.columns, part, roster.encode(part.rows), roster.order)
    step("people")
    number = _along_number(data)
    weights = data.weights
    return {
        "groups": groups,
        "selection_ratio": ratio,
        "gaps": gaps,
        "matchings": matchings,
        "subsets": subsets,
        "individuals": _individuals(drawn, sample, matchers),
        "pair_gaps": by_pair,
        "reference": data.labels[data.reference],
        "unknown": tuple(data.labels[code] for code in data.groups.apart),
        "attributes": attributes,
        "weights": None
        if weights.values is None or (weights.persons is not None and weights.is_even)
        else settings.weight_kind,
        "leaks": roster.leaks,
        "notes": (
            *_hints(data, groups),
            *unknown,
            *_number_notes(number),
            *(() if drawn is data else roster.table_notes),
        ),
        "impact": impact_tables(data) if data.decides else (),
        "conditional": conditional_facts(data),
        "classes": class_facts(data),
        "number": number,
        "similarity": roster.similarity.weights,
        "ratio_reference": base_label(data),
    }


# Words in the name of a score that say that a high score is bad for a person.
_RISKS = {"risk", "recid", "recidivism", "fraud", "default", "delinquency", "churn", "threat"}


def _hints(data: Audited, groups: tuple[GroupFacts, ...]) -> Iterable[str]:
    """Yield notes on a cut by rank, and on scores that look like a risk."""
    settings = data.settings
    if settings.top is not None:
        cut, tied = cut_at_rank(data.scores, data.weights, settings.top, settings.favourable)
        asked = f"{settings.top:.4g}" if settings.top >= 1 else f"{100 * settings.top:.4g}%"
        n_selected = data.weights.take(data.selected).people
        ties = f", where {tied:,} people tie" if tied > 1 else ""
        side = "at or above" if settings.favourable == "high" else "below"
        yield (
            f"The best {asked} were to be selected by rank. This cuts at scores {side} "
            f"{cut:.6g}{ties}, so {n_selected:,} people are {settings.named_outcome}. The "
            "intervals take this cut as given."
        )
    if not data.decides or settings.favourable == "low":
        return
    yield from _alike_notes(data, groups)
    words = set(re.findall(r"[^\W\d_]+", data.name.casefold()))
    advice = (
        "If a high score is bad for a person, pass favourable='low' (--favourable low), so that "
        "a low score counts as better."
    )
    limits = [own.auc.high for own in groups if own.auc is not None and own.auc.high is not None]
    if found := sorted(words & _RISKS):
        yield f"The score is called {data.name!r}, which sounds like a {found[0]}. {advice}"
    elif limits and max(limits) < 0.5:
        yield f"People with a positive label have lower scores than others. {advice}"


# A model treats nearly all people alike if it selects more, or fewer, than these shares of a group.
# A note says so if the share of favourable labels is as far from them as the third number.
_NEARLY_ALL, _NEARLY_NONE, _FAR = 0.85, 0.05, 0.15


def _alike_notes(data: Audited, groups: tuple[GroupFacts, ...]) -> Iterable[str]:
    """Yield a note on a model that selects nearly everybody, or nearly nobody, in every group."""
    labels, rates = data.people.labels, [groups[code].selection_rate for code in data.compared]
    shares = [own.value for own in rates if own.value is not None]
    is_asked = data.settings.top is not None or len(np.unique(data.selected)) == 1
    if labels is None or not shares or is_asked:
        return
    base = data.weights.take(labels.known).rate(data.has(True)[labels.known]).share
    bounds = None
    if min(shares) > max(_NEARLY_ALL, base + _FAR):
        bounds = f"At least {min(shares):.0%}"
    elif max(shares) < min(_NEARLY_NONE, base - _FAR):
        bounds = f"At most {max(shares):.0%}"
    if bounds is not None:
        yield (
            f"{bounds} of each group are {data.settings.named_outcome}, and {base:.0%} of the "
            "people have the favourable label. Gaps are always small if nearly everybody gets "
            "the same decision, so small gaps mean little here."
        )


def _refuse_given(why: str, **given: Any) -> None:
    """Raise if an argument was given that does not fit the others."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} was given, but {why} Leave {name} out.", parameter=name)


def _along_number(data: Audited) -> NumberDependence | None:
    """Return how scores depend on the number whose bands are the groups, if there is one."""
    given, weights = data.roster.sensitive_features, data.weights
    known = np.flatnonzero(~np.isnan(given.values)) if isinstance(given, Bands) else np.empty(0)
    if len(known) < 2 * LEAST:
        return None
    return dependence(
        data.scores[known],
        given.values[known],
        data.people.mass[known],
        (np.arange(len(data.scores)) if weights.persons is None else weights.persons)[known],
        confidence=data.settings.confidence,
        random_state=data.settings.random_state,
    )


def _number_notes(found: NumberDependence | None) -> Iterable[str]:
    if found is not None:
        yield (
            "The mean score at a person's number differs from the mean score of everybody by "
            f"{found.value:.4f} on average [{found.low:.4f}, {found.high:.4f}]."
        )


def _with_costs_of_all(data: Audited, matchers: list[PairMatcher]) -> tuple[Matching, ...]:
    """Return the facts of every matching, with the cost of matching everybody where it is known."""
    if data.refused:
        return (Matching((0, 0), False, refused=data.refused),)
    found = [matcher.facts() for matcher in matchers]
    roster, n_rows, features = data.roster, len(data.scores), None
    if any(own.transport and own.is_sample for own in found):
        n_columns = max(own.stop for own in roster.feature_groups.values())
        if n_rows * n_columns <= _MOST_CELLS:
            features = roster.alike(np.arange(n_rows))
    for k, (matcher, facts) in enumerate(zip(matchers, found, strict=True)):
        if facts.transport is None:
            continue
        cost: float | None = facts.transport.cost
        if facts.is_sample:
            cost = None if features is None else _cost_of_all(data, features, matcher.codes)
        found[k] = replace(facts, transport=replace(facts.transport, all_rows=cost))
    return tuple(found)


def _cost_of_all(data: Audited, features: FloatArray, codes: tuple[int, int]) -> float | None:
    rows, people = only_two(replace(data.people, table=None), codes)
    (part,) = people.comparisons(read_criterion("demographic_parity"))
    coupling = match_quantiles(people, part, data.shares[rows])
    return None if coupling.undetermined > _FEW_TIES else coupling.transport_cost(features[rows])


def _individuals(data: Audited, sample: Sample, matchers: list[PairMatcher]) -> Individuals | None:
    """Return the people of the sample, one by one; None if nobody is matched."""
    pairs = join_pairs(matchers)
    if not pairs:
        return None
    roster, people, ids = data.roster, sample.people, data.people.ids
    rows, chances = roster.positions[sample.rows], {}
    positive: list[int | None] = []
    if people.positive is not None and people.labels is not None:
        both = zip(people.positive.tolist(), people.labels.known.tolist(), strict=True)
        positive = [int(own) if known else None for own, known in both]
    if data.classes is not None:
        columns = map(tuple, data.classes.scores[sample.rows].T.tolist())
        chances = dict(zip(map(str, data.classes.outcome.classes), columns, strict=True))
    selected = data.selected[sample.rows].astype(int).tolist() if data.decides else ()
    return Individuals(
        ids=tuple(map(str, rows)) if ids is None else tuple(ids[row] for row in sample.rows),
        rows=tuple(rows.tolist()),
        group=tuple(people.groups.codes.tolist()),
        scores=tuple(data.scores[sample.rows].tolist()),
        labels=tuple(positive),
        columns={column.name: _values(column, sample.rows) for column in roster.columns},
        hidden=(),
        pairs=pairs,
        selected=tuple(selected),
        weights=() if people.weights is None else tuple(people.weights.tolist()),
        near=joined([own.near() for own in matchers]) if roster.is_described else None,
        across=match_across(data, sample),
        chances=chances,
    )


def _values(column: Column, rows: NDArray[np.intp]) -> tuple[str | float | None, ...]:
    values, missing = column.values[rows].tolist(), column.missing[rows].tolist()
    if column.levels is None:
        return tuple(None if m else float(v) for v, m in zip(values, missing, strict=True))
    levels = [str(level) for level in column.levels]
    return tuple(None if m else levels[v] for v, m in zip(values, missing, strict=True))


def _provenance(data: Audited, roster: Roster) -> Provenance:
    people, groups = data.people, data.groups
    settings = asdict(data.settings)
    if within := settings["score_range"]:
        settings["score_range"] = f"{within[0]:g} to {within[1]:g}"
    labels: Any = people.positive
    if data.decides:
        settings |= {"pos_label": str(roster.pos_label), **data.label_texts}
    else:
        del settings["threshold"], settings["outcome"]
        labels = None if people.labels is None else people.labels.values
    settings["described_by"] = ", ".join(column.name for column in roster.columns) or None
    if roster.strata is not None:
        settings["given"] = ", ".join(roster.strata.names)
    if roster.similarity.how != "range":
        settings["similarity"] = roster.similarity.how
    memberships = groups.codes if groups.memberships is None else groups.memberships
    return Provenance(
        version=__version__,
        seed=settings.pop("random_state"),
        scores_sha256=_sha256(data.scores.tobytes()),
        groups_sha256=_sha256(memberships.tobytes()),
        labels_sha256=None if labels is None else _sha256(labels.tobytes()),
        features_sha256=_sha256(*map(column_bytes, roster.columns)) if roster.columns else None,
        source=None,
        source_sha256=None,
        settings=settings,
        weights_sha256=None if people.weights is None else _sha256(people.weights.tobytes()),
    )


def _sha256(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _compare(data: Audited, first: Audited, favoured: Collection[int] | None) -> ModelPair:
    """Return how a model's ranks and decisions differ from the reference's."""
    found = ModelPair(data.name, first.name, {}, {}, None if favoured is None else {})
    for code, label in enumerate(data.labels):
        rows = data.groups.is_group(code)
        weights = data.weights.take(rows)
        ranks = rank_correlation(first.scores[rows], data.scores[rows], weights.values)
        found.rank_agreement[label] = None if np.isnan(ranks) else ranks
        if not data.decides:
            continue
        before, after = (own.selected[rows].astype(int) for own in (first, data))
        (neither, gained), (lost, selected) = _crossed(weights, before, after, 2)
        found.decisions[label] = neither, lost, gained, selected
        if favoured is not None and found.undesirable_flips is not None:
            found.undesirable_flips[label] = gained if code in favoured else lost
        if data.classes is None or first.classes is None:
            continue
        names = [str(name) for name in first.classes.outcome.classes]
        before, after = first.classes.decided[rows], data.classes.decided[rows]
        moves = _crossed(weights, before, after, len(names))
        found.moves[label] = {
            name: dict(zip(names, own, strict=True)) for name, own in zip(names, moves, strict=True)
        }
    return found


def _crossed(weights: Weights, before: Any, after: Any, n_levels: int) -> list[list[int]]:
    """Return how many people have each two decisions of two models."""
    ones = weights.values if weights.is_counts else None
    counts = np.bincount(n_levels * before + after, ones, minlength=n_levels**2)
    found: list[list[int]] = counts.astype(int).reshape(n_levels, n_levels).tolist()
    return found
