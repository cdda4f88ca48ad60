"""The command ``fairmatch audit``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fairmatch.cli.gate import hold_to, read_gates, without_baseline
from fairmatch.cli.options import check_page, command, read_cut
from fairmatch.cli.printing import follow_steps, print_facts, print_roles, print_table, shown
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Comparison

INDIVIDUALS = "individuals"
"""The value of ``--hide`` that leaves out people's rows altogether."""

# How many steps the audit of one model reports, for the length of the bar.
_STEPS = 4
# Why options say nothing about many Parquet files.
_OF_ONE_FILE = {
    "models": "The files are one table of scores.",
    "group_probabilities": "Estimated groups need one file.",
    "bands": "Cut the number before the files are written.",
    "by": "Periods need one file.",
    "stages": "Stages need one file.",
    "accepted": "Their scores are read as numbers: write decisions as 0 and 1.",
    "privileged": "Their scores are those of one model, whose decisions do not flip.",
    "given": "A comparison within strata needs one file.",
    "score_range": "Their scores lie in [0, 1].",
    "similar": "Audits of many files match nobody.",
    "categorical": "Their columns are read as they are.",
    "weight_kind": "They have a row for every person, and no weights.",
    **dict.fromkeys(("classes", "unordered"), "Several classes need one file."),
    **dict.fromkeys(("encoding", "decimal", "missing"), "It is for CSV files."),
}
# Options that the audit takes as they are typed, of any table and of one file.
_SETTINGS = (
    "kind", "threshold", "top", "score_range", "outcome", "confidence", "n_resamples", "n_sample",
    "min_group_size", "reference", "random_state", "pos_label", "title", "author", "date",
    "purpose",
)  # fmt: skip
_OF_FILES = ("models", "unordered", "accepted", "reading", "known", "by", "stages", "weight_kind",
             "given", "similar", "categorical")  # fmt: skip


@command("fairmatch audit people.csv --score score --sensitive sex --out report.html")
def audit(asked: Any) -> int:
    """Measure how scores treat groups of people, and who is treated like whom.

    TABLE is a .csv or .parquet file. Several files hold the same people. A quoted pattern such as
    'scores/*.parquet', or a folder, is one table that need not fit into memory.
    """
    from fairmatch.auditing.facts import Comparison
    from fairmatch.auditing.files import audit_files
    from fairmatch.auditing.impact import write_tables
    from fairmatch.auditing.streaming import audit_dataset, is_dataset
    from fairmatch.people.files import check_outputs, write_whole
    from fairmatch.people.roles import Roles, split_names
    from fairmatch.report.page import check_filing, require_report, write_filing, write_report

    estimated = bool(asked.group_probabilities)
    if bool(asked.sensitive_features) == estimated:
        raise click.UsageError(
            "Name the group of each person with --sensitive, or the probabilities of the groups "
            "with --group-probabilities."
        )
    if asked.stages and (asked.y_score or asked.models):
        raise click.UsageError("--stages takes the place of --score and --model. Name one of them.")
    if asked.known is not None and not estimated:
        raise click.UsageError("--known is for groups that are estimated (--group-probabilities).")
    gates = read_gates(asked)
    check_outputs(asked.tables, json=asked.json, out=asked.out, filing=asked.filing)
    _check_folder(asked.folder, asked.kind)
    check_page(asked.out)
    words = [word.strip() for word in (asked.label_words or "").split(",") if asked.label_words]
    if words and len(words) != 2:
        raise InputError(
            f"--label-words must be two texts with a comma between them, got {asked.label_words!r}."
        )
    fields = dict(field.partition("=")[::2] for field in asked.filing_fields)
    if asked.out or asked.filing:
        require_report()
    if asked.filing:
        check_filing(asked.filing, fields)
    roles = Roles(
        scores=asked.y_score,
        sensitive=asked.sensitive_features or asked.group_probabilities,
        label=asked.y_true,
        id=asked.ids,
        weight=asked.sample_weight,
        features=asked.features or None,
        ignored=(*asked.drop, *(() if asked.known is None else (asked.known,))),
        period=asked.by,
        kept=asked.keep,
        numbers=(*asked.group_probabilities, *(cut.partition("=")[0] for cut in asked.bands)),
    )
    several, favourable = split_names(asked.classes, ()), asked.favourable
    if several and favourable is not None:
        favourable = split_names(favourable, several)
    elif favourable not in ("high", "low", None) and not (several or asked.models):
        raise InputError(
            f"favourable={favourable!r} is neither high nor low. With more than two classes, name "
            "them with --classes.",
            parameter="favourable",
        )
    typed = vars(asked)
    found: Audit | Comparison
    n_models = len(asked.tables) * len(asked.y_score) + len(asked.models)
    with follow_steps(_STEPS * n_models + 1) as progress:
        shared: dict[str, Any] = {"show": print_roles, "progress": progress,
                                  **{name: typed[name] for name in _SETTINGS}}  # fmt: skip
        if any(map(is_dataset, asked.tables)):
            _refuse_options_of_one_file(asked.tables)
            found = audit_dataset(
                asked.tables[0], roles, favourable=asked.favourable or "high", **shared
            )
        else:
            found = audit_files(
                asked.tables,
                roles,
                favourable=favourable,
                classes=several,
                privileged=asked.privileged or None,
                estimated=estimated,
                cuts=dict(map(read_cut, asked.bands)),
                **{name: typed[name] for name in _OF_FILES},
                **shared,
            )
    first = found.audits[0] if isinstance(found, Comparison) else found
    hidden = split_names(asked.hide, [column.name for column in first.columns])
    # A column that is not there is an error, whether or not the rows are left out with it.
    if columns := [name for name in hidden if name != INDIVIDUALS]:
        found = found.hiding(*columns)
    if asked.no_individuals or INDIVIDUALS in hidden:
        found = found.without_individuals(asked.min_cell)
    audits = found.audits if isinstance(found, Comparison) else (found,)
    held = without_baseline(audits, asked.baseline)
    print_audits(audits)
    if asked.json:
        private = any(one.individuals is not None for one in audits)
        write_whole(asked.json, found.to_json(indent=2), private=private)
        print(f"Facts: {asked.json}")
    if asked.out:
        write_report(found, asked.out, label_words=words)
        print(f"Report: {asked.out}")
    if asked.filing:
        write_filing(found, asked.filing, fields=fields, label_words=words)
        print(f"Filing: {asked.filing}")
    if asked.folder:
        for file in write_tables(audits, asked.folder):
            print(f"Table: {file}")
    return hold_to(gates, held, asked.gate)


def _refuse_options_of_one_file(tables: Sequence[str]) -> None:
    """Raise if something was typed that says nothing about many Parquet files."""
    if len(tables) > 1:
        raise InputError(
            "A pattern or a folder was given with another table. It stands for one table of "
            "scores, which is audited alone. Leave out the other tables."
        )
    given = click.get_current_context()
    for parameter in given.command.params:
        name = parameter.name or ""
        why = _OF_ONE_FILE.get(name)
        if why and given.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = parameter.opts[0]
            raise InputError(
                f"{option} was given with a pattern or a folder of Parquet files. {why} Leave "
                f"{option} out."
            )


def _check_folder(folder: str | None, kind: str) -> None:
    """Raise before the work where tables could not be written."""
    if folder is not None and kind == "number":
        raise InputError(
            "--tables was given with --kind number. Numeric predictions select no one, so there "
            "are no rates to file. Leave it out, or write the facts with --json."
        )
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"--tables must be a folder, and {folder} is a file. Name a folder.")


def print_audits(audits: Sequence[Audit]) -> None:
    """Print audits of the same people, one per model: rates, gaps, and sentences about them."""
    for audit in audits:
        _print_groups(audit)
        _print_classes(audit)
    print_table(
        [f"gap {_level(audits[0])}", *(audit.model_name for audit in audits)],
        [[gap.name, *(_shown_gap(audit, gap.name) for audit in audits)] for gap in audits[0].gaps],
    )
    if any(audit.pair_gaps for audit in audits):
        print(
            "Each gap is the largest over pairs of groups. 'By chance' is its average if the "
            "groups did not differ."
        )
    stated = [gap for gap in audits[0].gaps if gap.detectable is not None]
    if stated:
        least = ", ".join(f"{gap.name} {gap.detectable:.4f}" for gap in stated)
        print(f"The smallest gaps that this many people would reveal in 80% of cases: {least}")
    for audit in audits:
        for show, facts in (
            (_print_given, audit.conditional),
            (_print_periods, audit.periods),
            (_print_stages, audit.stages),
        ):
            if facts:
                print()
                show(audit)
        _print_rest(audit)


def _level(audit: Audit) -> str:
    return f"[{audit.confidence:.0%} interval]"


def _print_groups(audit: Audit) -> None:
    """Print the selection rate and the ratio, or the mean prediction, of each group."""
    from fairmatch.report.wording import base_words, selected_from

    real = audit.kind == "number"
    what = "predictions in units of the target"
    if not real:
        what = f"{audit.outcome} means a {selected_from(audit)}"
    if audit.classes is not None:
        good = " or ".join(audit.classes.favourable)
        what = f"{audit.outcome} means that the most probable class is {good}"
    print(f"{audit.model_name}: {audit.n_rows:,} people; {what}")
    ratios = {
        group.label: f"{group.ratio:.3f}" for group in audit.groups if group.ratio is not None
    }
    ratios |= dict.fromkeys(audit.unknown, "not compared")
    print_facts(
        audit.groups,
        {
            "group": "label",
            "people": "n_rows",
            f"{'mean prediction' if real else audit.outcome} {_level(audit)}": "mean_score"
            if real
            else "selection_rate",
            "" if real else "ratio": lambda group: ratios.get(group.label, ""),
        },
    )
    if audit.spread is not None:
        print(f"Standard deviation of the {audit.spread.of}: {audit.spread.value:.4f}")
    if audit.selection_ratio.value is not None:
        print(f"Smallest ratio: {shown(audit.selection_ratio)}")
    if audit.ratio_reference is not None and (len(audit.groups) > 2 or audit.is_reference_named):
        matched = f"; matchings are with {audit.reference}, {audit.on_reference}"
        print(f"Ratios are to {audit.ratio_reference}, {base_words(audit)}{matched}.")
    if audit.undecided:
        print(audit.undecided)
    print()


def _print_classes(audit: Audit) -> None:
    """Print the share of every group that gets each class, and the gaps over all classes."""
    if (facts := audit.classes) is None:
        return
    rows = [
        [group.label, f"{group.n_rows:,}", *(shown(group.shares[name]) for name in facts.names)]
        for group in facts.groups
    ]
    print_table(["group", "people", *(f"gets {name}" for name in facts.names)], rows)
    print_facts(facts.gaps, {f"gap over all classes {_level(audit)}": "name", "": lambda gap: gap})
    print()


def _print_given(audit: Audit) -> None:
    """Print the differences of each group without and with the given factors."""
    decides = audit.threshold is not None
    print_facts(
        audit.conditional,
        {
            f"given {audit.provenance.settings.get('given') or 'the factors'}": lambda one: (
                f"{one.group} less {one.reference}"
            ),
            "difference": "marginal",
            f"within strata {_level(audit)}": "adjusted",
            f"odds ratio {_level(audit)}" if decides else "relative": lambda one: (
                (one.odds_ratio if decides else one.percent) or "not stated"
            ),
            "p": lambda one: "" if one.p_value is None else f"{one.p_value:.3g}",
            "compared": lambda one: (
                f"{one.overlap[0]:.1%} of {one.group}, {one.overlap[1]:.1%} of {one.reference}"
            ),
        },
    )
    print(
        "'Within strata' is the mean difference between people with the same given factors, and "
        "'compared' is the share of people in strata that have people of both groups."
    )


def _print_periods(audit: Audit) -> None:
    """Print the gap and the ratio of every period, and how differences change."""
    from fairmatch.people.groups import with_spaces_shown

    first = audit.periods[0].gaps[0].name
    ratio = {} if audit.threshold is None else {"smallest ratio": "selection_ratio"}
    print_facts(
        audit.periods,
        {
            "period": "name",
            "people": lambda one: sum(group.n_rows for group in one.groups),
            f"{first} {_level(audit)}": lambda one: next(g for g in one.gaps if g.name == first),
            **ratio,
        },
    )
    if not audit.changes:
        return
    print_facts(
        audit.changes,
        {
            "change": lambda one: f"{one.before} to {one.after}",
            "of": "measure",
            "group": lambda one: f"{with_spaces_shown(one.group)} less {one.reference}",
            "difference": lambda one: " to ".join(map(shown, one.differences)),
            f"change {_level(audit)}": "change",
            "p": lambda one: f"{one.p_value:.3g}",
            "p (Holm)": lambda one: f"{one.p_adjusted:.3g}",
        },
    )
    if len(audit.changes) > 1:
        print(f"p (Holm) is adjusted for these {len(audit.changes):,} tests.")


def _print_stages(audit: Audit) -> None:
    """Print the rate and the ratio of every group, stage by stage."""
    print_facts(
        [(stage, own) for stage in audit.stages for own in stage.impact[-1].categories],
        {
            "stage": lambda one: f"{one[0].stage} of {one[0].among}",
            "group": lambda one: one[1].category,
            "people": lambda one: one[1].n_people,
            f"rate {_level(audit)}": lambda one: (
                "too few people" if one[1].is_few else one[1].selection_rate
            ),
            "ratio": lambda one: "" if one[1].is_few else one[1].impact_ratio,
        },
    )


def _print_rest(audit: Audit) -> None:
    """Print the findings in sentences, and what is not stated."""
    from fairmatch.report.wording import leak_sentence, reach_sentences, sentences

    print(f"\n{audit.model_name}")
    if described := audit.provenance.settings["described_by"]:
        print(f"  Described by: {described}.")
    _, *said = sentences(audit)
    if len(audit.matchings) == 1:  # with more pairs of groups, only the report shows each
        said[1:1] = reach_sentences(audit.matchings[0])
    said += map(leak_sentence, audit.leaks)
    refusals = [why for why in audit.refusals if not any(why in sentence for sentence in said)]
    for sentence in dict.fromkeys((*said, *audit.notes, *refusals)):
        print(f"  {sentence}")


def _shown_gap(audit: Audit, name: str) -> str:
    from fairmatch.people.groups import with_spaces_shown

    gap = audit.gap(name)
    said = shown(gap)
    if audit.pair_gaps and gap.expected is not None:
        said += f" (by chance {gap.expected:.4f})"
    if gap.favoured is None or gap.groups is None:
        return said
    other = next(label for label in gap.groups if label != gap.favoured)
    return f"{said} {with_spaces_shown(gap.favoured)} ahead of {other}"
