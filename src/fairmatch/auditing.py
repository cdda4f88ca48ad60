"""Any model's scores to an audit: who is treated how, and who like whom."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from fairmatch import __version__
from fairmatch.columns import Column, read_columns, split_column
from fairmatch.counterparts import (
    Sample,
    draw_rows,
    list_people,
    match_people,
    matched_parity_gap,
)
from fairmatch.coupling import IndexArray
from fairmatch.encoding import TableEncoder
from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.facts import Audit, Comparison, ModelPair, Provenance
from fairmatch.groupfacts import (
    SCORE_EDGES,
    Scored,
    describe_groups,
    selection_ratio,
    take_gaps,
)
from fairmatch.inputs import FloatArray, Groups, read_column, read_groups, read_labels, read_scores
from fairmatch.matching import fair_matching
from fairmatch.measures import rank_agreement, undesirable_flips
from fairmatch.subsets import HALF_SPACE_ROWS, scan_subsets

# A category with more levels than this is an identifier, not a property that people share.
_MOST_LEVELS = 1000
# A table of more numbers than this is not encoded whole, and ties of more than this share of the
# mass leave the cost of matching everybody too open to state.
_MOST_CELLS = 50_000_000
_FEW_TIES = 0.01


def audit(
    y_score: Any,
    *,
    sensitive_features: ArrayLike,
    X: Any = None,
    y_true: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    threshold: float = 0.5,
    pos_label: Any = 1,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    n_sample: int = 4096,
    n_subsets: int = 1000,
    min_group_size: int = 30,
    random_state: int = 0,
    model_name: str = "model",
    progress: Callable[[str], None] | None = None,
) -> Audit:
    r"""State how a model treats two groups of people, and which of them it treats alike.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,), or a fitted estimator
        Scores in [0, 1], or 0/1 decisions, of any model; or a classifier with ``predict_proba``,
        which then scores ``X``.
    sensitive_features : array-like of shape (n_rows,)
        Group of every row; two groups.
    X : table or array of shape (n_rows, n_columns), optional
        What is known of the people, of pandas, polars, pyarrow or NumPy; missing values are
        allowed. Without it there are gaps, intervals and the matching by score quantiles.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes, for error rates, calibration and the joint map.
    ids : array-like of shape (n_rows,), optional
        Who the rows are; row numbers by default.
    threshold : float, default=0.5
        Accepted are scores at or above it.
    pos_label : default=1
        The label that counts as positive.
    confidence : float, default=0.95
        Level of the intervals.
    n_resamples : int, default=1000
        Bootstrap resamples, and permutations.
    n_sample : int, default=4096
        People drawn of each group for the matchings; everybody of a smaller group.
    n_subsets : int, default=1000
        Random half-spaces to look at.
    min_group_size : int, default=30
        Nothing is stated of fewer people; the audit says so by name.
    random_state : int, default=0
        Seed: same seed, same audit.
    model_name : str, default="model"
        What to call the model.
    progress : callable, optional
        Called with the name of each step before it starts.

    Returns
    -------
    Audit

    Notes
    -----
    The model's own matching :math:`T^f` (`fairmatch.fair_matching`) is compared with the nearest
    matching and with a random one, on the same sample:

    .. math:: \frac{C(T^f) - C_{\min}}{C_{\mathrm{random}} - C_{\min}},
              \qquad C(T) = E \|X - T(X)\|^2,

    which is 0 for a matching as near as possible, 1 for one as good as random. Numbers are scaled
    to [0, 1] and two different categories are at squared distance 2, as in
    `fairmatch.encoding.TableEncoder`. A gap is a fact about these people; whether it is
    acceptable is not for a library to say.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> gap = found.gap("demographic_parity_gap")
    >>> print(f"{gap.value} [{gap.low:.2f}, {gap.high:.2f}]")
    0.5 [0.33, 0.65]
    """
    table = _read_table(
        sensitive_features, X, y_true, ids, pos_label, getattr(y_score, "sensitive_column", None)
    )
    return _audit(
        table,
        _scores(y_score, table),
        _Settings(
            threshold=threshold,
            confidence=confidence,
            n_resamples=n_resamples,
            n_sample=n_sample,
            n_subsets=n_subsets,
            min_group_size=min_group_size,
        ),
        random_state,
        model_name,
        progress,
    )


def compare_models(
    y_scores: Mapping[str, Any],
    *,
    sensitive_features: ArrayLike,
    privileged: Hashable | None = None,
    X: Any = None,
    y_true: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    threshold: float = 0.5,
    pos_label: Any = 1,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    n_sample: int = 4096,
    n_subsets: int = 1000,
    min_group_size: int = 30,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Audit two or more models on the same people, and compare them with the first.

    Parameters
    ----------
    y_scores : mapping
        Name of each model to its scores, or to a fitted estimator. The first is the reference,
        usually the model without a fairness constraint.
    privileged : a group label, optional
        The favoured group, which tells undesirable flips from others.
    sensitive_features, X, y_true, ids, threshold, pos_label, confidence, n_resamples, n_sample, \
n_subsets, min_group_size, random_state, progress
        As in `audit`.

    Returns
    -------
    Comparison

    Notes
    -----
    All models are looked at on the same sample, so that their transport costs can be compared.
    Rank agreement and undesirable flips are those of Appendix E.3 of the paper.

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
    if len(y_scores) < 2:
        raise InputError(f"A comparison needs at least two models, got {len(y_scores)}.")
    inside = {getattr(model, "sensitive_column", None) for model in y_scores.values()} - {None}
    table = _read_table(
        sensitive_features, X, y_true, ids, pos_label, inside.pop() if inside else None
    )
    if privileged is not None and privileged not in table.groups.labels:
        raise GroupError(
            f"privileged={privileged!r} is not one of the groups {table.groups.labels[0]!r} and "
            f"{table.groups.labels[1]!r}."
        )
    settings = _Settings(
        threshold=threshold,
        confidence=confidence,
        n_resamples=n_resamples,
        n_sample=n_sample,
        n_subsets=n_subsets,
        min_group_size=min_group_size,
    )
    scores = {name: _scores(model, table) for name, model in y_scores.items()}
    audits = tuple(
        _audit(table, own, settings, random_state, name, progress) for name, own in scores.items()
    )
    (reference, first), *others = scores.items()
    return Comparison(
        audits=audits,
        pairs=tuple(
            _compare(name, own, reference, first, table.groups, privileged, threshold)
            for name, own in others
        ),
        privileged=None if privileged is None else str(privileged),
    )


def _compare(
    name: str,
    scores: FloatArray,
    reference: str,
    reference_scores: FloatArray,
    groups: Groups,
    privileged: Hashable | None,
    threshold: float,
) -> ModelPair:
    labels = [str(label) for label in groups.labels]
    agreement = rank_agreement(reference_scores, scores, sensitive_features=groups.codes)
    flips = undesirable_flips(
        reference_scores,
        scores,
        sensitive_features=groups.codes,
        privileged=1 if privileged is None else groups.labels.index(privileged),
        threshold=threshold,
    )
    tables = {code: flips.tables[code].tolist() for code in (0, 1)}
    return ModelPair(
        model=name,
        reference=reference,
        rank_agreement={
            label: None if np.isnan(value) else value
            for label, value in zip(labels, agreement.values(), strict=True)
        },
        decisions={label: (*tables[c][0], *tables[c][1]) for c, label in enumerate(labels)},
        undesirable_flips=None
        if privileged is None
        else {label: flips.undesirable[code] for code, label in enumerate(labels)},
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """What is known of the people, read once for all models."""

    X: Any
    columns: list[Column]
    features: Any  # X without the sensitive column
    groups: Groups
    sensitive_features: Any
    positive: Any
    pos_label: Any
    ids: list[str]
    samples: dict[tuple[int, int], Sample]

    def sample(self, n_sample: int, seed: int) -> Sample:
        """Draw the sample, once for all models, so that the nearest matching is found once."""
        key = n_sample, seed
        if key not in self.samples:
            rows = draw_rows(self.groups, n_sample, seed)
            self.samples[key] = Sample(
                rows=rows,
                groups=Groups(self.groups.codes[rows], self.groups.labels),
                features=self.encode(rows) if self.columns else None,
                feature_groups=self.encoder.feature_groups_ if self.columns else {},
                positive=None if self.positive is None else self.positive[rows],
                n_table=len(self.groups),
            )
        return self.samples[key]

    @cached_property
    def encoder(self) -> TableEncoder:
        return TableEncoder(missing="encode").fit(self.features)

    def encode(self, rows: IndexArray) -> FloatArray:
        encoded: FloatArray = self.encoder.transform(_take(self.features, rows))
        return encoded

    @property
    def n_encoded(self) -> int:
        """How many numbers describe a person."""
        return len(self.encoder.get_feature_names_out())


def _read_table(
    sensitive_features: ArrayLike,
    X: Any,
    y_true: ArrayLike | None,
    ids: ArrayLike | None,
    pos_label: Any,
    sensitive_column: Any,
) -> _Table:
    groups = read_groups(sensitive_features)
    n_rows = len(groups)
    features = X if X is None else _without(X, sensitive_column)
    columns = [] if X is None else read_columns(features)
    for column in columns:
        if len(column.values) != n_rows:
            raise InputError(
                f"X has {len(column.values)} rows where sensitive_features has {n_rows}."
            )
        if column.levels is not None and len(column.levels) > _MOST_LEVELS:
            raise InputError(
                f"Column {column.name!r} has {len(column.levels)} different values, more than "
                f"{_MOST_LEVELS}: it looks like a name or a number that identifies people. Leave "
                "it out of X, and give it as ids if the audit should show it."
            )
    names = [] if ids is None else [str(value) for value in read_column(ids, "ids").tolist()]
    if names and len(names) != n_rows:
        raise InputError(f"ids has {len(names)} rows where {n_rows} were expected.")
    return _Table(
        X=X,
        columns=columns,
        features=features,
        groups=groups,
        sensitive_features=sensitive_features,
        positive=None
        if y_true is None
        else read_labels(y_true, n_rows=n_rows, pos_label=pos_label),
        pos_label=pos_label,
        ids=names,
        samples={},
    )


def _without(X: Any, column: Any) -> Any:
    """Leave the sensitive column out of what describes people, where X holds it."""
    try:
        return X if column is None else split_column(X, column)[0]
    except ColumnError:  # a model that needs no group to predict may be given none
        return X


def _take(X: Any, rows: IndexArray) -> Any:
    if not nw.dependencies.is_into_dataframe(X):
        return np.asarray(X)[rows]
    return nw.from_native(X, eager_only=True)[rows].to_native()


def _scores(y_score: Any, table: _Table) -> FloatArray:
    n_rows = len(table.groups)
    if hasattr(y_score, "predict_proba"):
        if table.X is None:
            raise InputError("y_score is an estimator, which needs X to score the rows: pass X.")
        y_score = score_people(y_score, table.X, table.sensitive_features, table.pos_label)
    elif hasattr(y_score, "predict") or callable(y_score):
        raise InputError(
            f"{type(y_score).__name__} has no predict_proba. Pass its scores in [0, 1], or its "
            "0/1 decisions, as y_score."
        )
    return read_scores(y_score, n_rows=n_rows)


def score_people(model: Any, X: Any, sensitive_features: Any, pos_label: Any = 1) -> FloatArray:
    """Take a classifier's probability of the positive label, for every row.

    Parameters
    ----------
    model : fitted estimator
        With ``predict_proba``; it is given the sensitive features if it takes them and does not
        find them in X.
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
    given = {}
    takes = "sensitive_features" in inspect.signature(model.predict_proba).parameters
    if takes and getattr(model, "sensitive_column", None) is None:  # else the groups are in X
        given["sensitive_features"] = sensitive_features
    probabilities = np.asarray(model.predict_proba(X, **given))
    classes = list(getattr(model, "classes_", (0, 1)))
    if pos_label not in classes or probabilities.ndim != 2 or probabilities.shape[1] != 2:
        raise InputError(
            f"The estimator knows the classes {classes}; two are needed, of which "
            f"pos_label={pos_label!r} is one."
        )
    return read_scores(probabilities[:, classes.index(pos_label)])


@dataclass(frozen=True)
class _Settings:
    """What governs the statements; kept with the audit."""

    threshold: float
    confidence: float
    n_resamples: int
    n_sample: int
    n_subsets: int
    min_group_size: int

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise InputError(f"confidence must lie between 0 and 1, got {self.confidence}.")
        least = {"n_resamples": 100, "n_sample": 2, "n_subsets": 1, "min_group_size": 2}
        for name, limit in least.items():
            if getattr(self, name) < limit:
                raise InputError(f"{name} must be at least {limit}, got {getattr(self, name)}.")


def _audit(
    table: _Table,
    scores: FloatArray,
    settings: _Settings,
    seed: int,
    model_name: str,
    progress: Callable[[str], None] | None,
) -> Audit:
    step = progress or (lambda name: None)
    data = Scored(
        scores=scores,
        groups=table.groups,
        positive=table.positive,
        threshold=settings.threshold,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        min_group_size=settings.min_group_size,
        seed=seed,
    )
    step("groups and gaps")
    groups, gaps, ratio = describe_groups(data), take_gaps(data), selection_ratio(data)
    step("matchings")
    sample = table.sample(settings.n_sample, seed)
    matching, pairs = match_people(data, sample)
    if matching.transport is not None:
        cost = _cost_of_all(data, table, sample, matching.transport.cost)
        matching = replace(matching, transport=replace(matching.transport, all_rows=cost))
    step("subsets")
    subsets = None
    if table.columns:
        rows = draw_rows(table.groups, HALF_SPACE_ROWS // 2, seed)
        subsets = scan_subsets(
            data, table.columns, rows, table.encode(rows), n_subsets=settings.n_subsets
        )
    step("people")
    return Audit(
        model_name=model_name,
        n_rows=len(scores),
        threshold=settings.threshold,
        confidence=settings.confidence,
        score_edges=tuple(SCORE_EDGES.tolist()),
        groups=groups,
        selection_ratio=ratio,
        gaps=(*gaps, *matched_parity_gap(matching)),
        matching=matching,
        subsets=subsets,
        individuals=list_people(data, sample, table.columns, table.ids, pairs) if pairs else None,
        provenance=_provenance(data, table, settings),
    )


def _cost_of_all(
    data: Scored, table: _Table, sample: Sample, cost_of_sample: float
) -> float | None:
    if len(sample.rows) == sample.n_table:
        return cost_of_sample
    if sample.n_table * table.n_encoded > _MOST_CELLS:
        return None
    coupling = fair_matching(data.scores, table.groups.codes)
    if coupling.undetermined > _FEW_TIES:
        return None
    return coupling.transport_cost(table.encode(np.arange(sample.n_table)))


def _provenance(data: Scored, table: _Table, settings: _Settings) -> Provenance:
    return Provenance(
        version=__version__,
        seed=data.seed,
        scores_sha256=_sha256(data.scores.tobytes()),
        groups_sha256=_sha256(data.groups.codes.tobytes()),
        labels_sha256=None if data.positive is None else _sha256(data.positive.tobytes()),
        features_sha256=_sha256(*map(_bytes, table.columns)) if table.columns else None,
        source=None,
        source_sha256=None,
        settings={**asdict(settings), "pos_label": str(table.pos_label)},
    )


def _sha256(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _bytes(column: Column) -> bytes:
    """Name, missing values and values: the same for the same table in any table library."""
    head = f"{column.name}\0{column.kind}\0".encode()
    if column.levels is None:
        values = np.where(column.missing, 0.0, column.values.astype(np.float64))
        return head + column.missing.tobytes() + values.tobytes()
    # By the text of each level, since the order of levels is the library's business.
    levels, codes = np.unique([str(level) for level in column.levels], return_inverse=True)
    text = np.append(codes, -1).astype(np.int32)[column.values]
    return head + "\0".join(levels.tolist()).encode() + text.tobytes()
