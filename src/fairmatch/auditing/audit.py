"""Audits of any model's scores: how groups are treated, and which people are treated alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairmatch import __version__
from fairmatch.auditing.facts import (
    About,
    AttributeFacts,
    Audit,
    Comparison,
    Estimate,
    Gap,
    GroupFacts,
    Individuals,
    MatchedScores,
    Matching,
    ModelPair,
    NearestFair,
    Provenance,
    Spread,
    SubsetScan,
)
from fairmatch.auditing.gaps import (
    SCORE_EDGES,
    describe_groups,
    few_values,
    selection_ratio,
    take_gaps,
)
from fairmatch.auditing.impact import impact_tables
from fairmatch.auditing.matchings import PairMatcher, join_pairs, match_across, matched_parity_gaps
from fairmatch.auditing.people import (
    UNKNOWN,
    AuditSettings,
    PeopleTable,
    Scored,
    list_people,
    read_people,
    sha256,
)
from fairmatch.auditing.subsets import HALF_SPACE_ROWS, Part, scan_subsets
from fairmatch.exceptions import InputError
from fairmatch.learning.choice import FairnessPath
from fairmatch.matching.fair import fair_matching
from fairmatch.measures import rank_agreement
from fairmatch.measures.changes import favoured_groups
from fairmatch.measures.registry import MEASURES
from fairmatch.people.checks import FloatArray, read_column, read_scores
from fairmatch.people.groups import Groups, attribute_columns, is_word
from fairmatch.people.outcome import NUMBER

_KNOWN = "the standard deviation is taken as known"


@dataclass(frozen=True)
class Units:
    r"""A linear map between predictions and [0, 1], under which gaps scale exactly.

    Attributes
    ----------
    low : float
        The smallest prediction.
    width : float
        The largest prediction minus the smallest, or 1 if all predictions are equal.

    Notes
    -----
    With :math:`u = (f - a) / b`, gaps of means, Wasserstein gaps and matched gaps of :math:`f`
    are :math:`b` times those of :math:`u`. Kolmogorov-Smirnov gaps stay the same.

    Examples
    --------
    >>> units = Units.of([np.array([30.0, 40.0, 50.0])])
    >>> units.shares(np.array([30.0, 35.0])).tolist(), units.length(0.25)
    ([0.0, 0.25], 5.0)
    """

    low: float
    width: float

    @classmethod
    def of(cls, predictions: Sequence[FloatArray]) -> Units:
        """Return the units in which the predictions of one or several models fill [0, 1]."""
        low = min(float(own.min()) for own in predictions)
        high = max(float(own.max()) for own in predictions)
        with np.errstate(over="ignore"):
            width = float(np.subtract(high, low))
        if not np.isfinite(width):
            raise InputError(
                f"Predictions run from {low:g} to {high:g}, a range too wide for a number. Pass "
                "them in a larger unit."
            )
        return cls(low, width or 1.0)

    def shares(self, predictions: FloatArray) -> FloatArray:
        """Return predictions as shares of the range."""
        shares: FloatArray = np.clip((predictions - self.low) / self.width, 0.0, 1.0)
        return shares

    def place(self, share: float) -> float:
        """Return the prediction at a share of the range."""
        return self.low + self.width * share

    def length(self, share: float) -> float:
        """Return the difference of predictions that corresponds to a share of the range."""
        return self.width * share

    def lengths(self, shares: Sequence[float]) -> tuple[float, ...]:
        """Return the differences of predictions that correspond to several shares."""
        return tuple(self.length(share) for share in shares)

    def between(self, fact: Estimate) -> Estimate:
        """Return an estimated difference, with its interval, in units of the target."""
        value, low, high = (None if end is None else self.length(end) for end in _ends(fact))
        return Estimate(value, low, high, fact.refused)

    def at(self, fact: Estimate) -> Estimate:
        """Return an estimated mean, with its interval, in units of the target."""
        value, low, high = (None if end is None else self.place(end) for end in _ends(fact))
        return Estimate(value, low, high, fact.refused)


def _ends(fact: Estimate | Gap) -> tuple[float | None, float | None, float | None]:
    return fact.value, fact.low, fact.high


def in_units(audit: Audit, units: Units, predictions: FloatArray) -> Audit:
    """Return an audit of scaled predictions with its facts in units of the target.

    Parameters
    ----------
    audit : Audit
        An audit of predictions scaled to [0, 1], with the standard deviation of relative gaps.
    units : Units
        How the predictions were scaled.
    predictions : array of float
        The predictions of the people of the sample, as they were given.
    """
    spread = audit.spread
    assert spread is not None
    people = audit.individuals
    return replace(
        audit,
        score_edges=tuple(map(units.place, audit.score_edges)),
        score_values=tuple(map(units.place, audit.score_values)),
        groups=_groups(audit.groups, units),
        gaps=_gaps(audit.gaps, units, spread),
        pair_gaps=_gaps(audit.pair_gaps, units, spread),
        attributes=tuple(_attribute(own, units, spread) for own in audit.attributes),
        matchings=tuple(_matching(own, units) for own in audit.matchings),
        subsets=None if audit.subsets is None else _subsets(audit.subsets, units),
        individuals=None if people is None else _people(people, units, predictions),
    )


def _groups(groups: Sequence[GroupFacts], units: Units) -> tuple[GroupFacts, ...]:
    return tuple(replace(own, mean_score=units.at(own.mean_score)) for own in groups)


def _gaps(gaps: Sequence[Gap], units: Units, spread: Spread) -> tuple[Gap, ...]:
    """Return gaps in units, followed by the relative version of each gap that has a unit."""
    found = [
        _scaled(gap, units.width) if MEASURES[gap.name].unit == "score" else gap for gap in gaps
    ]
    if spread.value > 0.0:
        found += [
            replace(
                _scaled(gap, 1.0 / spread.value),
                name=f"relative_{gap.name}",
                symbol=f"{gap.symbol}/σ",
                method=gap.method if gap.value is None else f"{gap.method}; {_KNOWN}",
            )
            for gap in found
            if MEASURES[gap.name].unit == "score"
        ]
    return tuple(found)


def _scaled(gap: Gap, factor: float) -> Gap:
    value, low, high, signed = (
        None if end is None else end * factor for end in (*_ends(gap), gap.signed)
    )
    return replace(gap, value=value, low=low, high=high, signed=signed)


def _attribute(facts: AttributeFacts, units: Units, spread: Spread) -> AttributeFacts:
    return replace(
        facts,
        groups=_groups(facts.groups, units),
        gaps=_gaps(facts.gaps, units, spread),
        pair_gaps=_gaps(facts.pair_gaps, units, spread),
    )


def _matching(matching: Matching, units: Units) -> Matching:
    nearest = matching.nearest_fair
    return replace(
        matching,
        matched_gaps=tuple(_matched(own, units) for own in matching.matched_gaps),
        nearest_fair=None if nearest is None else _nearest(nearest, units),
        reach=tuple(replace(own, score_gap=units.length(own.score_gap)) for own in matching.reach),
    )


def _matched(matched: MatchedScores, units: Units) -> MatchedScores:
    quantiles = {name: units.length(value) for name, value in matched.quantiles.items()}
    return replace(matched, gap=units.between(matched.gap), quantiles=quantiles)


def _nearest(found: NearestFair, units: Units) -> NearestFair:
    return replace(
        found,
        slack=units.length(found.slack),
        score_gap=units.length(found.score_gap),
        least_gap=units.length(found.least_gap),
        curve=tuple(replace(point, gap=units.length(point.gap)) for point in found.curve),
    )


def _subsets(scan: SubsetScan, units: Units) -> SubsetScan:
    spaces = scan.half_spaces
    return replace(
        scan,
        subsets=tuple(
            replace(
                own,
                gap=units.length(own.gap),
                signed=units.length(own.signed),
                confirmed=units.between(own.confirmed),
            )
            for own in scan.subsets
        ),
        half_spaces=replace(
            spaces, gaps=units.lengths(spaces.gaps), noise=units.lengths(spaces.noise)
        ),
    )


def _people(people: Individuals, units: Units, predictions: FloatArray) -> Individuals:
    pairs, across = (
        {name: replace(own, score_gap=units.lengths(own.score_gap)) for name, own in found.items()}
        for found in (people.pairs, people.across)
    )
    return replace(
        people,
        scores=tuple(predictions.tolist()),
        pairs=pairs,
        across=across,
        near=tuple(replace(own, score_gap=units.lengths(own.score_gap)) for own in people.near),
    )


def read_model(y_score: Any, table: PeopleTable, scale: str = "probability") -> FloatArray:
    """Return the scores of a model, or let the model score the people.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,), or fitted estimator
        The scores, or a model that scores ``table.X``.
    table : PeopleTable
        The people.
    scale : {"probability", "real"}, default="probability"
        Whether the scores are probabilities, or predictions in units of the target.
    """
    method = "predict" if scale == "real" else "predict_proba"
    if hasattr(y_score, method) and table.X is None:
        raise InputError(
            "y_score is an estimator and X is None, but an estimator needs X to score the rows. "
            "Pass X."
        )
    if scale == "real":
        if hasattr(y_score, method):
            return predict_people(y_score, table.X, table.sensitive_features)
        predicted = NUMBER.read(y_score, n_rows=table.n_given)
        return predicted if table.positions is None else predicted[table.positions]
    if hasattr(y_score, method):
        scored = score_people(y_score, table.X, table.sensitive_features, table.pos_label)
        return _read_probabilities(scored, len(table.groups))
    if hasattr(y_score, "predict") or callable(y_score):
        raise InputError(
            f"{type(y_score).__name__} has no predict_proba. Pass its scores in [0, 1], or its "
            "0/1 decisions, as y_score."
        )
    scores = _read_probabilities(y_score, table.n_given)
    return scores if table.positions is None else scores[table.positions]


def check_scores(y_score: Any, scale: str) -> None:
    """Raise unless scores are on their scale.

    This runs before labels are read. If predictions and a target are on another scale, an error
    about the scale explains more than one about labels.
    """
    is_model = hasattr(y_score, "predict_proba") or hasattr(y_score, "predict") or callable(y_score)
    if scale == "probability" and not is_model:
        _read_probabilities(y_score)


def _read_probabilities(y_score: Any, n_rows: int | None = None) -> FloatArray:
    try:
        return read_scores(y_score, n_rows=n_rows)
    except InputError as error:
        if "[0, 1]" not in str(error):
            raise
        raise InputError(
            f"{error} Or pass scale='real' (--scale real) for predictions in units of the target."
        ) from None


def score_people(model: Any, X: Any, sensitive_features: Any, pos_label: Any = 1) -> FloatArray:
    """Return a classifier's probability of the positive label for every row.

    Parameters
    ----------
    model : fitted estimator
        A classifier with ``predict_proba``. It gets the sensitive features if it takes them and
        does not find them in X.
    X : table or array
        The rows, as the model expects them.
    sensitive_features : array-like
        Group of every row.
    pos_label : default=1
        The label that counts as positive.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> score_people(DummyClassifier().fit([[0], [0]], [0, 1]), [[0]], None).tolist()
    [0.5]
    """
    probabilities = _called(model, "predict_proba", X, sensitive_features)
    classes = np.asarray(getattr(model, "classes_", (0, 1))).tolist()
    if pos_label not in classes or probabilities.ndim != 2 or probabilities.shape[1] != 2:
        raise InputError(
            f"The estimator knows the classes {classes}. It must have two classes, and "
            f"pos_label={pos_label!r} must be one of them. Pass the pos_label of this model."
        )
    return read_scores(probabilities[:, classes.index(pos_label)])


def predict_people(model: Any, X: Any, sensitive_features: Any) -> FloatArray:
    """Return a regressor's prediction for every row.

    Parameters
    ----------
    model : fitted estimator
        A regressor with ``predict``. It gets the sensitive features if it takes them and does not
        find them in X.
    X : table or array
        The rows, as the model expects them.
    sensitive_features : array-like
        Group of every row.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> predict_people(DummyRegressor().fit([[0], [0]], [30.0, 40.0]), [[0]], None).tolist()
    [35.0]
    """
    if hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} is a classifier, and scale='real' audits predictions in "
            "units of the target. Pass a regressor, or leave out scale."
        )
    return NUMBER.read(_called(model, "predict", X, sensitive_features), name="predict")


def _called(model: Any, method: str, X: Any, sensitive_features: Any) -> NDArray[Any]:
    """Return what a method of a model returns for the rows. It gets the groups if it takes them."""
    call, given = getattr(model, method), {}
    takes = "sensitive_features" in inspect.signature(call).parameters
    if takes and getattr(model, "sensitive_column", None) is None:  # else the groups are in X
        given["sensitive_features"] = sensitive_features
    return np.asarray(call(X, **given))


# A table with more numbers than this is not encoded whole.
_MOST_CELLS = 50_000_000
# Where ties leave more than this share of the mass open, the cost of matching everybody is not
# stated.
_FEW_TIES = 0.01
# Up to this many pairs of groups are matched with the requested number of people.
_FULL_PAIRS = 2


def build_audit(
    table: PeopleTable,
    scores: FloatArray,
    settings: AuditSettings,
    model_name: str,
    about: About,
    progress: Callable[[str], None] | None,
    units: Units | None = None,
) -> Audit:
    """Return the audit of one model, made in steps.

    Parameters
    ----------
    table : PeopleTable
        The people.
    scores : array of shape (n_rows,)
        Their scores.
    settings : AuditSettings
        The settings of the audit.
    model_name : str
        What to call the model.
    about : About
        Title, author, date and purpose.
    progress : callable or None
        Called with the name of each step before it starts.
    units : Units, optional
        How predictions are scaled to [0, 1], where scores are predictions.
    """
    given, scores = scores, scores if units is None else units.shares(scores)
    step = progress or (lambda name: None)
    data = Scored(scores, table.groups, table.positive, settings, table.unknown, table.weights)
    step("groups and gaps")
    groups, ratio = describe_groups(data), selection_ratio(data)
    gaps, by_pair = take_gaps(data)
    attributes = tuple(
        _describe_attribute(name, own, data) for name, own in table.attributes.items()
    )
    step("matchings")
    # Fewer people are drawn if there are many pairs, to keep the time from growing with them.
    share = min(1.0, np.sqrt(_FULL_PAIRS / max(len(data.matched_pairs), 1)))
    n_sample = max(int(share * settings.n_sample), 1)
    sample = table.sample(n_sample, settings.random_state)
    matchers = [PairMatcher(data, sample, codes) for codes in data.matched_pairs]
    matchings = _with_costs_of_all(data, table, matchers)
    step("subsets")
    subsets = None
    if table.columns:
        # The sample uses the same random stream, so both hold the same people of a small table.
        part = Part(*table.draw(HALF_SPACE_ROWS // 2, settings.generator(2)))
        features = table.encode(part.rows)
        subsets = scan_subsets(data, table.columns, part, features, table.order)
    step("people")
    nearest = matched_parity_gaps(matchings)
    pairs = join_pairs(matchers)
    near = tuple(found for matcher in matchers if (found := matcher.near()) is not None)
    audit = Audit(
        model_name=model_name,
        n_rows=table.weights.people,
        threshold=None if settings.is_real else settings.threshold,
        confidence=settings.confidence,
        score_edges=tuple(SCORE_EDGES.tolist()),
        groups=groups,
        selection_ratio=ratio,
        gaps=(*gaps, *sorted(nearest, key=lambda gap: -(gap.value or 0.0))[:1]),
        matchings=matchings,
        subsets=subsets,
        individuals=list_people(data, sample, table, pairs, near, match_across(data, sample))
        if pairs
        else None,
        provenance=_provenance(data, table, given),
        pair_gaps=(*by_pair, *(nearest if len(nearest) > 1 else ())),
        reference=data.labels[data.reference],
        unknown=tuple(data.labels[code] for code in data.unknown),
        attributes=attributes,
        n_selected=None if settings.is_real else table.weights.take(data.selected).people,
        favourable=settings.favourable,
        outcome=settings.named_outcome,
        about=about,
        weights=None if table.weights.values is None else settings.weight_kind,
        leaks=table.leaks,
        notes=_notes(table),
        impact=() if settings.is_real else impact_tables(data, table.attributes),
        scale=settings.scale,
        spread=_spread(table, given) if settings.is_real else None,
        score_values=few_values(data),
    )
    return audit if units is None else in_units(audit, units, given[sample.rows])


def _spread(table: PeopleTable, scores: FloatArray) -> Spread:
    """Return the standard deviation of the target, or of the predictions if there is no target."""
    values, weights = scores if table.target is None else table.target, table.weights.values
    mean = np.average(values, weights=weights)
    variance = np.average((values - mean) ** 2, weights=weights)
    return Spread("predictions" if table.target is None else "target", float(np.sqrt(variance)))


def _notes(table: PeopleTable) -> tuple[str, ...]:
    """Return what a reader should know about how the rows count."""
    weights, notes = table.weights, []
    for name, values in attribute_columns(table.sensitive_features, "sensitive_features"):
        column = read_column(values, "sensitive_features")
        written = np.array([is_word(value, UNKNOWN) for value in column.tolist()])
        if n_people := weights.take(written).people:
            what = "the group" if name is None else repr(name)
            notes.append(
                f"For {n_people:,} people {what} is written {UNKNOWN!r}. They are counted with "
                "those for whom it is missing, and are compared with nobody."
            )
    if table.positions is not None:
        notes.append("Rows of weight 0 were left out.")
    if weights.values is not None and weights.is_survey:
        if (weights.values == np.rint(weights.values)).all() and weights.values.max() > 1.0:
            notes.append(
                "The weights are whole numbers and were read as weights of a survey. If each is "
                'a number of people, pass weight_kind="counts" (--weight-kind counts).'
            )
        notes.append(
            f"The rows are weighted. {weights.n_rows:,} rows are worth {weights.size:,.0f} people "
            "of equal weight, and the intervals are based on that number."
        )
    return tuple(notes)


def _describe_attribute(name: str, groups: Groups, data: Scored) -> AttributeFacts:
    """Return the facts about the groups of one of several attributes."""
    unknown = [code for code, label in enumerate(groups.labels) if label == UNKNOWN]
    own = replace(data, groups=groups, unknown=tuple(unknown))
    gaps, by_pair = take_gaps(own)
    return AttributeFacts(
        name=name,
        groups=describe_groups(own),
        selection_ratio=selection_ratio(own),
        gaps=gaps,
        pair_gaps=by_pair,
        reference=own.labels[own.reference],
        unknown=tuple(own.labels[code] for code in own.unknown),
    )


def _with_costs_of_all(
    data: Scored, table: PeopleTable, matchers: list[PairMatcher]
) -> tuple[Matching, ...]:
    """Return the facts of every matching, with the cost of matching everybody where it is known."""
    if data.refused:
        return (Matching((0, 0), False, refused=data.refused),)
    found = [matcher.facts() for matcher in matchers]
    n_rows = len(data.scores)
    features = None
    if any(f.transport and f.is_sample for f in found) and n_rows * table.n_encoded <= _MOST_CELLS:
        features = table.encode(np.arange(n_rows))
    for k, (matcher, facts) in enumerate(zip(matchers, found, strict=True)):
        if facts.transport is None:
            continue
        cost: float | None = facts.transport.cost
        if facts.is_sample:
            cost = None if features is None else _cost_of_all(data, features, matcher.codes)
        found[k] = replace(facts, transport=replace(facts.transport, all_rows=cost))
    return tuple(found)


def _cost_of_all(data: Scored, features: FloatArray, codes: tuple[int, int]) -> float | None:
    rows = np.flatnonzero(np.isin(data.groups.codes, codes))
    coupling = fair_matching(
        data.scores[rows],
        data.groups.codes[rows],
        sample_weight=data.weights.take(rows).values,
    )
    return None if coupling.undetermined > _FEW_TIES else coupling.transport_cost(features[rows])


def _provenance(data: Scored, table: PeopleTable, scores: FloatArray) -> Provenance:
    settings = asdict(data.settings)
    labels = table.target if data.settings.is_real else data.positive
    if data.settings.is_real:
        del settings["threshold"], settings["outcome"]
    else:
        settings["pos_label"] = str(table.pos_label)
    weights = data.weights.values
    return Provenance(
        version=__version__,
        seed=settings.pop("random_state"),
        scores_sha256=sha256(scores.tobytes()),
        groups_sha256=sha256(data.groups.codes.tobytes()),
        labels_sha256=None if labels is None else sha256(labels.tobytes()),
        features_sha256=table.sha256,
        source=None,
        source_sha256=None,
        settings={
            **settings,
            "described_by": ", ".join(column.name for column in table.columns) or None,
        },
        weights_sha256=None if weights is None else sha256(weights.tobytes()),
    )


def compare_scores(
    name: str,
    scores: FloatArray,
    reference: str,
    reference_scores: FloatArray,
    table: PeopleTable,
    favoured: Collection[int] | None,
    settings: AuditSettings,
) -> ModelPair:
    """Return how a model's ranks and decisions differ from the reference's.

    Parameters
    ----------
    name : str
        Name of the model.
    scores : array of shape (n_rows,)
        Its scores.
    reference : str
        Name of the model that it is compared with.
    reference_scores : array of shape (n_rows,)
        The scores of that model.
    table : PeopleTable
        The people.
    favoured : collection of int, or None
        Codes of the favoured groups, if some were named.
    settings : AuditSettings
        The settings of the audit, such as the threshold.
    """
    agreement = _agreements(reference_scores, scores, table)
    if settings.is_real:
        return ModelPair(name, reference, agreement, decisions={}, undesirable_flips=None)
    before, after = (
        Scored(own, table.groups, None, settings).selected for own in (reference_scores, scores)
    )
    decisions, undesirable = {}, {}
    for code, label in enumerate(map(str, table.groups.labels)):
        rows = table.groups.is_group(code)
        weights = table.weights.take(rows)
        ones = weights.values if weights.is_counts else None
        kept = np.bincount(2 * before[rows] + after[rows], ones, minlength=4)
        neither, gained, lost, both = kept.astype(int).tolist()
        decisions[label] = neither, lost, gained, both
        undesirable[label] = gained if favoured and code in favoured else lost
    return ModelPair(
        model=name,
        reference=reference,
        rank_agreement=agreement,
        decisions=decisions,
        undesirable_flips=None if favoured is None else undesirable,
    )


def _agreements(
    first: FloatArray, second: FloatArray, table: PeopleTable
) -> dict[str, float | None]:
    """Return Spearman's correlation by group. It is None where a model's scores are constant."""
    found: Iterable[float]
    if table.weights.values is None:
        found = rank_agreement(first, second, sensitive_features=table.groups.codes).values()
    else:
        found = [
            _agreement(first[rows], second[rows], table.weights.values[rows])
            for rows in map(table.groups.is_group, range(table.groups.n_groups))
        ]
    labels = map(str, table.groups.labels)
    return {
        label: None if np.isnan(value) else value
        for label, value in zip(labels, found, strict=True)
    }


def _agreement(first: FloatArray, second: FloatArray, weights: FloatArray) -> float:
    ranks = [_ranks(own, weights) for own in (first, second)]
    centred = [own - np.average(own, weights=weights) for own in ranks]
    spreads = [float(weights @ own**2) for own in centred]
    if min(spreads) <= 0.0:
        return float("nan")
    return float(weights @ (centred[0] * centred[1]) / np.sqrt(spreads[0] * spreads[1]))


def _ranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Rank values by the weight below them. Tied values get their mean rank."""
    _, level = np.unique(values, return_inverse=True)
    mass = np.bincount(level, weights)
    ranks: FloatArray = (np.cumsum(mass) - mass / 2.0)[level]
    return ranks


def audit(
    y_score: Any,
    *,
    sensitive_features: ArrayLike,
    X: Any = None,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weight_kind: str = "survey",
    ids: ArrayLike | None = None,
    keep: Collection[str] = (),
    scale: str = "probability",
    threshold: float = 0.5,
    favourable: str = "high",
    outcome: str | None = None,
    pos_label: Any = 1,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    n_sample: int = 4096,
    n_subsets: int = 1000,
    min_group_size: int = 30,
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
    y_score : array-like of shape (n_rows,), or a fitted estimator
        Scores in [0, 1] or 0/1 decisions of any model, or a classifier with ``predict_proba``,
        which then scores ``X``. With ``scale="real"`` these are predictions, or a regressor with
        ``predict``.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. With several attributes, the groups are the combinations that occur,
        and each attribute is described by itself too. People whose value is missing, or reads
        "unknown", form the group "unknown", which is shown but not compared.
    X : table or array of shape (n_rows, n_columns), optional
        What is known of the people: a table of pandas, polars or pyarrow, or a NumPy array.
        Missing values are allowed. Without X there are gaps, intervals and the matching by score
        quantiles.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes, for error rates, calibration and the joint map. With
        ``scale="real"`` these are the numbers to predict. Relative gaps are in units of their
        standard deviation.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. Rows of weight 0 are left out of everything.
    weight_kind : {"survey", "counts"}, default="survey"
        What the weights are. A survey weight is how much a person counts; the intervals are then
        based on Kish's effective number of people. A count is how many people a row of an
        aggregated table stands for.
    ids : array-like of shape (n_rows,), optional
        Identifier of every row. By default it is the row number.
    keep : collection of str, default=()
        Columns of X to keep although they identify people or give their group away. A column of
        that kind that is not listed here is an error.
    scale : {"probability", "real"}, default="probability"
        What the scores are. With "real" they are predictions in units of the target, which select
        nobody. The audit then has gaps of means, of distributions and of matched people, both in
        units and relative to a standard deviation. It has no rates, ratios or decisions.
    threshold : float in [0, 1], default=0.5
        A person with a score at or above the threshold is selected. With ``favourable="low"`` a
        person with a score below it is selected.
    favourable : {"high", "low"}, default="high"
        Which scores are good for a person. Rates, ratios and gaps are of the favourable outcome.
        With "low" the favourable label is the one that is not ``pos_label``, and the true
        positive rate is the share of people with that label who are selected.
    outcome : str, optional
        What the selected are called, such as "hired" or "granted bail". The default is "selected",
        or "not flagged" with ``favourable="low"``.
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
    random_state : int, default=0
        Seed. The same seed gives the same audit.
    model_name : str, default="model"
        What to call the model.
    title, author, date, purpose : str, optional
        What a reader of the report wants to know first. They are kept as they are given.
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
    `fairmatch.people.encoding.TableEncoder`. A gap is a fact about these people. A library cannot
    decide whether it is acceptable.

    Predictions are scaled to [0, 1] by their range, audited, and scaled back. This changes no gap.
    The intervals assume that no prediction lies outside the observed range, and that the standard
    deviation of relative gaps is known.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> gap = found.gap("demographic_parity_gap")
    >>> print(f"{gap.value} [{gap.low:.2f}, {gap.high:.2f}]")
    0.5 [0.33, 0.65]

    Predictions of hours:

    >>> hours = audit([30.0, 40.0, 42.0, 48.0] * 20, sensitive_features=["f", "f", "m", "m"] * 20,
    ...               scale="real")
    >>> print(f"{hours.gap('mean_parity_gap').value:.2f} hours, threshold {hours.threshold}")
    10.00 hours, threshold None
    """
    settings = AuditSettings(
        threshold=threshold,
        confidence=confidence,
        n_resamples=n_resamples,
        n_sample=n_sample,
        n_subsets=n_subsets,
        min_group_size=min_group_size,
        random_state=random_state,
        favourable=favourable,
        outcome=outcome,
        weight_kind=weight_kind,
        scale=scale,
    )
    _check_labels(settings, pos_label)
    check_scores(y_score, scale)
    inside = getattr(y_score, "sensitive_column", None)
    table = read_people(
        sensitive_features,
        X,
        y_true,
        ids,
        pos_label,
        inside,
        sample_weight,
        weight_kind,
        keep,
        scale,
    )
    about = About(title, author, date, purpose)
    scores = read_model(y_score, table, scale)
    units = Units.of([scores]) if settings.is_real else None
    table = table.ordered([scores])
    return build_audit(table, scores, settings, model_name, about, progress, units)


def _check_labels(settings: AuditSettings, pos_label: Any, privileged: Any = None) -> None:
    """Raise if a label or a favoured group was given although scores are predictions."""
    labelled = {} if pos_label in (1, None) else {"pos_label": pos_label}
    favouring = {} if privileged is None else {"privileged": privileged}
    for name, given in (labelled | favouring).items():
        if settings.is_real:
            raise InputError(
                f"{name}={given!r} was given with scale='real', and predictions in units of the "
                f"target have neither classes nor decisions. Leave {name} out."
            )


def compare_models(
    y_scores: Mapping[str, Any] | FairnessPath,
    *,
    sensitive_features: ArrayLike,
    privileged: Hashable | Iterable[Hashable] | None = None,
    X: Any = None,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    keep: Collection[str] = (),
    pos_label: Any = 1,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    purpose: str | None = None,
    progress: Callable[[str], None] | None = None,
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
    privileged : a group label, or a list of them, optional
        The favoured groups. They decide which flips are undesirable.
    X : table or array of shape (n_rows, n_columns), optional
        What is known of the people: a table of pandas, polars or pyarrow, or a NumPy array.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. With ``scale="real"`` these are the numbers to predict.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. Rows of weight 0 are left out of everything.
    ids : array-like of shape (n_rows,), optional
        Identifier of every row. By default it is the row number.
    keep : collection of str, default=()
        Columns of X to keep although they identify people or give their group away.
    pos_label : default=1
        The label that a high score predicts.
    title, author, date, purpose : str, optional
        What a reader of the report wants to know first. They are kept as they are given.
    progress : callable, optional
        Called with the name of each step before it starts.
    **settings
        Settings of the audits:

        - ``threshold=0.5``: the score from which a person is selected.
        - ``favourable="high"``: which scores are good. With "low", people below the threshold are
          selected.
        - ``outcome=None``: what the selected are called, such as "hired".
        - ``scale="probability"``: "real" if the scores are predictions in units of the target.
        - ``weight_kind="survey"``: "counts" if a weight is a number of people.
        - ``confidence=0.95``: level of the intervals.
        - ``n_resamples=1000``: number of bootstrap resamples, and of permutations.
        - ``n_sample=4096``: how many people of each group are drawn for the matchings.
        - ``n_subsets=1000``: number of random half-spaces to examine.
        - ``min_group_size=30``: nothing is stated about a group of fewer people.
        - ``random_state=0``: seed of all random draws.

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
    if isinstance(y_scores, FairnessPath):
        y_scores = y_scores.named()
    if len(y_scores) < 2:
        raise InputError(
            f"A comparison needs at least two models, got {len(y_scores)}. Add a model, or audit a "
            "single one with fairmatch.audit."
        )
    governed = AuditSettings(**settings)
    _check_labels(governed, pos_label, privileged)
    about = About(title, author, date, purpose)
    for own in y_scores.values():
        check_scores(own, governed.scale)
    inside = {getattr(model, "sensitive_column", None) for model in y_scores.values()} - {None}
    table = read_people(
        sensitive_features,
        X,
        y_true,
        ids,
        pos_label,
        inside.pop() if inside else None,
        sample_weight,
        governed.weight_kind,
        keep,
        governed.scale,
    )
    favoured = None if privileged is None else favoured_groups(table.groups, privileged)
    scores = {name: read_model(model, table, governed.scale) for name, model in y_scores.items()}
    table = table.ordered(list(scores.values()))
    # All models share one range, and so one difference at which scores count as alike.
    units = Units.of(list(scores.values())) if governed.is_real else None
    audits = tuple(
        build_audit(table, own, governed, name, about, progress, units)
        for name, own in scores.items()
    )
    if units is not None:  # scaling keeps the ranks
        scores = {name: units.shares(own) for name, own in scores.items()}
    (reference, first), *others = scores.items()
    return Comparison(
        audits=audits,
        pairs=tuple(
            compare_scores(name, own, reference, first, table, favoured, governed)
            for name, own in others
        ),
        privileged=None
        if favoured is None
        else "; ".join(str(table.groups.labels[code]) for code in sorted(favoured)),
    )
