"""Any model's scores to an audit: who is treated how, and who like whom."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairmatch import __version__
from fairmatch.auditing.facts import Audit, Comparison, ModelPair, Provenance
from fairmatch.auditing.groups import (
    SCORE_EDGES,
    Scored,
    describe_groups,
    selection_ratio,
    take_gaps,
)
from fairmatch.auditing.matchings import (
    Sample,
    draw_rows,
    list_people,
    match_people,
    matched_parity_gap,
)
from fairmatch.auditing.people import PeopleTable, read_model, read_people, sha256
from fairmatch.auditing.subsets import HALF_SPACE_ROWS, scan_subsets
from fairmatch.exceptions import GroupError, InputError
from fairmatch.matching.quantiles import fair_matching
from fairmatch.measures.gaps import rank_agreement, undesirable_flips
from fairmatch.tables.arrays import FloatArray
from fairmatch.tables.groups import Groups
from fairmatch.tables.parameters import check_count, check_number, check_threshold

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
    `fairmatch.tables.encoder.TableEncoder`. A gap is a fact about these people; whether it is
    acceptable is not for a library to say.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> gap = found.gap("demographic_parity_gap")
    >>> print(f"{gap.value} [{gap.low:.2f}, {gap.high:.2f}]")
    0.5 [0.33, 0.65]
    """
    table = read_people(
        sensitive_features, X, y_true, ids, pos_label, getattr(y_score, "sensitive_column", None)
    )
    return _audit(
        table,
        read_model(y_score, table),
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
    table = read_people(
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
    scores = {name: read_model(model, table) for name, model in y_scores.items()}
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
        check_threshold(self.threshold)
        check_number("confidence", self.confidence, "(0, 1)")
        least = {"n_resamples": 100, "n_sample": 2, "n_subsets": 1, "min_group_size": 2}
        for name, limit in least.items():
            check_count(name, getattr(self, name), limit)


def _audit(
    table: PeopleTable,
    scores: FloatArray,
    settings: _Settings,
    seed: int,
    model_name: str,
    progress: Callable[[str], None] | None,
) -> Audit:
    check_count("random_state", seed, 0)
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
    data: Scored, table: PeopleTable, sample: Sample, cost_of_sample: float
) -> float | None:
    if len(sample.rows) == sample.n_table:
        return cost_of_sample
    if sample.n_table * table.n_encoded > _MOST_CELLS:
        return None
    coupling = fair_matching(data.scores, table.groups.codes)
    if coupling.undetermined > _FEW_TIES:
        return None
    return coupling.transport_cost(table.encode(np.arange(sample.n_table)))


def _provenance(data: Scored, table: PeopleTable, settings: _Settings) -> Provenance:
    return Provenance(
        version=__version__,
        seed=data.seed,
        scores_sha256=sha256(data.scores.tobytes()),
        groups_sha256=sha256(data.groups.codes.tobytes()),
        labels_sha256=None if data.positive is None else sha256(data.positive.tobytes()),
        features_sha256=table.sha256,
        source=None,
        source_sha256=None,
        settings={
            **asdict(settings),
            "pos_label": str(table.pos_label),
            "described_by": ", ".join(column.name for column in table.columns) or None,
        },
    )
