"""Two models on the same people: how their ranks and decisions differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from fairmatch.auditing.facts import ModelPair
from fairmatch.auditing.people import PeopleTable
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.settings import AuditSettings
from fairmatch.measures import rank_agreement
from fairmatch.tables.arrays import FloatArray


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
