"""Audits of tables that do not fit into memory, from counts of everybody and a sample."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairmatch.auditing.assembly import audit
from fairmatch.auditing.dataset import Dataset
from fairmatch.auditing.facts import Audit, Gap
from fairmatch.auditing.parquet import ParquetFiles
from fairmatch.auditing.sweep import Sweep
from fairmatch.exceptions import InputError
from fairmatch.tables.roles import Roles, RoleTable


def audit_dataset(
    pattern: str,
    roles: Roles,
    *,
    pos_label: str = "1",
    show: Callable[[RoleTable], None] | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Audit:
    """Audit scores in Parquet files that are never read whole.

    Parameters
    ----------
    pattern : str
        The files: a folder, or a name with wildcards such as ``*``.
    roles : Roles
        The role of each column. There must be one column of scores.
    pos_label : str
        The positive label, as it is written in the table.
    show : callable, optional
        Called with the `RoleTable`, which describes every column, before the audit starts.
    progress : callable, optional
        Called with the name of each step before it starts.
    **settings
        Further arguments of `fairmatch.audit`.

    Returns
    -------
    Audit
        Groups and gaps are those of everybody, from counts by score. Matchings, subsets and people
        are those of a random sample of each group, which the seed fixes.
    """
    if len(roles.scores) != 1:
        raise InputError(
            f"{pattern} is read as one table, which is audited for one column of scores, and "
            f"{len(roles.scores)} columns of scores were named. Name one with --score, and audit "
            "others one by one."
        )
    if settings.get("scale", "probability") != "probability":
        raise InputError(
            f"{pattern} is read as one table, in which scores in [0, 1] are counted, and "
            f"scale={settings['scale']!r} was given. Audit predictions in one file."
        )
    if roles.weight is not None:
        raise InputError(
            f"Column {roles.weight!r} was named as the weight, and weights in many Parquet files "
            "are not read. First sum them up by score, group and label, and audit that table with "
            "--weight-kind counts."
        )
    step = progress or (lambda name: None)
    step("counting")
    data = Dataset(ParquetFiles(pattern), roles, pos_label)
    step("drawing")
    people = data.sample(settings.get("random_state", 0))
    read = replace(roles, sensitive=data.attributes).read(people, name=pattern)
    if show is not None:
        show(read)
    threshold = settings.get("threshold", 0.5)
    step("distances")
    counted, sweep = data.count(threshold)
    whole = audit(
        counted["score"].to_numpy(),
        sensitive_features=data.groups_of(counted),
        y_true=counted["label"].to_numpy() if roles.label else None,
        sample_weight=counted["count"].to_numpy(),
        weight_kind="counts",
        model_name=roles.scores[0],
        **settings,
    )
    if sweep is not None:
        whole = _with_exact(whole, data, sweep)
    features = read.features
    drawn = audit(
        people[roles.scores[0]].to_numpy(),
        sensitive_features=people[data.attributes]
        if len(data.attributes) > 1
        else people[data.attributes[0]].to_numpy(),
        X=people[features] if features else None,
        y_true=None if roles.label is None else data.is_positive(people[roles.label]),
        ids=None if roles.id is None else people[roles.id].to_numpy(),
        progress=progress,
        **settings,
    )
    return _joined(whole, drawn, data, read)


def _joined(whole: Audit, drawn: Audit, data: Dataset, read: RoleTable) -> Audit:
    """Return one audit made of the facts about everybody and the facts about the sample."""
    matched = tuple(gap for gap in drawn.gaps if gap.name == "matched_parity_gap")
    impact = whole.impact
    if len(data.attributes) == 1:
        impact = tuple(replace(table, attributes=tuple(data.attributes)) for table in impact)
    provenance = replace(
        whole.provenance,
        source=f"{data.files.pattern} ({len(data.files.files)} files)",
        source_sha256=_digest(data.files.files),
        features_sha256=drawn.provenance.features_sha256,
        settings={
            **whole.provenance.settings,
            "described_by": drawn.provenance.settings["described_by"],
        },
    )
    is_sample = drawn.n_rows < whole.n_rows
    note = f"Groups and gaps are those of all {whole.n_rows:,} people."
    if is_sample:
        note += (
            f" Matchings, subsets and people are those of a random sample of {drawn.n_rows:,} of "
            "them. The kinds of columns were found on this sample."
        )
    return replace(
        whole,
        gaps=(*whole.gaps, *matched),
        matchings=tuple(
            replace(matching, is_sample=is_sample or matching.is_sample)
            for matching in drawn.matchings
        ),
        subsets=drawn.subsets,
        individuals=drawn.individuals,
        provenance=provenance,
        columns=read.columns,
        leaks=drawn.leaks,
        notes=(note, *drawn.notes),
        impact=impact,
    )


def _digest(files: list[str]) -> str:
    """Return the hash of the files' hashes, in the order of the files."""
    whole = hashlib.sha256()
    for file in files:
        with Path(file).open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def _with_exact(whole: Audit, data: Dataset, sweep: Sweep) -> Audit:
    """Return an audit of cells in which exact distances replace those of the cells."""
    names = [", ".join(map(str, row)) for row in data.combinations.tolist()]
    exact = {
        "wasserstein_parity_gap": sweep.areas,
        "ks_parity_gap": sweep.largest,
    }

    def repaired(gap: Gap) -> Gap:
        if gap.name not in exact or gap.groups is None or gap.value is None:
            return gap
        first, second = sorted(names.index(label) for label in gap.groups)
        value = exact[gap.name][first, second]
        assert gap.low is not None
        assert gap.high is not None
        return replace(gap, value=value, low=min(gap.low, value), high=max(gap.high, value))

    return replace(
        whole,
        gaps=tuple(map(repaired, whole.gaps)),
        pair_gaps=tuple(map(repaired, whole.pair_gaps)),
    )
