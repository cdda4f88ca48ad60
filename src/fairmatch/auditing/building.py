"""The audit of one model, built step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np

from fairmatch import __version__
from fairmatch.auditing.across import match_across
from fairmatch.auditing.facts import (
    About,
    AttributeFacts,
    Audit,
    Matching,
    Provenance,
    Spread,
)
from fairmatch.auditing.gaps import take_gaps
from fairmatch.auditing.groups import SCORE_EDGES, describe_groups, few_values, selection_ratio
from fairmatch.auditing.impact import impact_tables
from fairmatch.auditing.matchings import PairMatcher, join_pairs, matched_parity_gaps
from fairmatch.auditing.people import UNKNOWN, PeopleTable, list_people, sha256
from fairmatch.auditing.scored import Scored
from fairmatch.auditing.settings import AuditSettings
from fairmatch.auditing.subsets import HALF_SPACE_ROWS, Part, scan_subsets
from fairmatch.auditing.units import Units, in_units
from fairmatch.matching.quantiles import fair_matching
from fairmatch.tables.arrays import FloatArray, read_column
from fairmatch.tables.groups import Groups, attribute_columns, is_word

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
