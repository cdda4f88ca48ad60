"""The command ``fairmatch audit``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairmatch.auditing.gate import MODES
from fairmatch.cli import options
from fairmatch.cli.gate import hold_to, read_gates, without_baseline
from fairmatch.cli.options import COUNT, FILE, Command
from fairmatch.cli.printing import follow_steps, print_roles, print_table
from fairmatch.exceptions import InputError, MissingExtraError

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Comparison, Estimate, Gap

INDIVIDUALS = "individuals"
"""The value of ``--hide`` that leaves out people's rows altogether."""

# How many steps the audit of one model reports, for the length of the bar.
_STEPS = 4
# Options that say nothing about many Parquet files: the value where they are not typed, and why.
_OF_ONE_FILE: dict[str, tuple[object, str]] = {
    "models": ((), "The files are one table of scores."),
    "group_probabilities": ((), "Estimated groups need one file."),
    "bands": ((), "Cut the number before the files are written."),
    "by": (None, "Periods need one file."),
    "stages": ((), "Stages need one file."),
    "classes": ((), "Several classes need one file."),
    "unordered": (False, "Several classes need one file."),
    "accepted": ((), "Their scores are read as numbers: write decisions as 0 and 1."),
    "privileged": ((), "Their scores are those of one model, whose decisions do not flip."),
    "given": ((), "A comparison within strata needs one file."),
    "score_range": (None, "Their scores lie in [0, 1]."),
    "similar": ((), "Nobody is matched in many files."),
    "categorical": ((), "Their columns are read as they are."),
    "weight_kind": ("survey", "They have a row for every person, and no weights."),
    "encoding": (None, "It is for CSV files."),
    "decimal": (".", "It is for CSV files."),
    "missing": ((), "It is for CSV files."),
}


@click.command(
    cls=Command,
    example="fairmatch audit people.csv --score score --sensitive sex --out report.html",
)
@click.argument("tables", nargs=-1, required=True, type=FILE, metavar="TABLE...")
@options.columns(
    "--score", "y_score", help="Column with scores in [0, 1] or decisions; each column is a model."
)
@options.classes
@options.sensitive("The group of each person")
@options.columns(
    "--group-probabilities",
    help="Columns with the probability of each group, instead of --sensitive.",
)
@options.bands
@click.option(
    "--known",
    metavar="COL",
    help="With --group-probabilities: column with the true group, if known.",
)
@click.option(
    "--label",
    "y_true",
    metavar="COL",
    help="Column with the outcome, for error rates; with --kind number, the target.",
)
@options.positive
@options.several(
    "--accepted",
    metavar="[COL=]VALUE",
    help="The word that means yes, if --score or --stages names columns of words such as Yes and "
    "No. If the columns have different words, repeat it: interview=invited, then offer=yes.",
)
@click.option(
    "--by", metavar="COL", help="Also audit each level of this column, such as the year, by itself."
)
@options.columns(
    "--stages",
    help="Decisions of a procedure in order, instead of --score, such as applied,invited,hired.",
)
@click.option("--id", "ids", metavar="COL", help="The identifier of each person; not a feature.")
@click.option("--weight", "sample_weight", metavar="COL", help="Weight of each row.")
@click.option(
    "--weight-kind",
    type=click.Choice(("survey", "counts")),
    default="survey",
    help="Whether weights are survey weights or numbers of people.",
)
@options.columns("--features", help="Columns that describe people. By default all other columns.")
@options.columns("--drop", help="Columns to leave out.")
@options.columns(
    "--keep", help="Use these columns even if they identify people or reveal the group."
)
@options.columns("--given", help="Also compare people within the levels of these columns.")
@options.columns(
    "--similar",
    help="Which columns make people similar: column names, also with weights (title=2,age=1), "
    "'relevance' (weights by importance for the label) or 'range' (all columns equally). By "
    "default relevance, if there are labels.",
)
@options.columns("--categorical", help="Read these columns of codes as categories, not as numbers.")
@options.reading
@options.several(
    "--model", "models", type=FILE, metavar="DIR", help="A saved model to score TABLE."
)
@options.several(
    "--privileged",
    metavar="GROUP",
    help="A favoured group, for undesirable flips, such as 'male, White'.",
)
@click.option(
    "--kind",
    type=click.Choice(("probability", "number")),
    default="probability",
    help="The kind of score: probabilities and decisions, or numeric predictions in units of the "
    "label.",
)
@click.option(
    "--threshold",
    type=float,
    help="People with a score at or above it are selected. By default 0.5; required with "
    "--score-range.",
)
@click.option(
    "--top",
    metavar="N|P%",
    help="Select the best N people, or the best P%, by rank instead of a threshold.",
)
@click.option(
    "--score-range",
    type=float,
    nargs=2,
    metavar="LOW HIGH",
    help="Smallest and largest possible score, if scores are not probabilities, such as 1 10.",
)
@click.option(
    "--favourable",
    metavar="high|low|CLASS,CLASS",
    help="Which scores are favourable: high (the default), or low, and then people below the "
    "threshold are selected. With --classes, the favourable classes.",
)
@click.option(
    "--outcome",
    metavar="WORDS",
    help="Words for the favourable outcome, such as 'granted bail'. By default selected, or not "
    "flagged.",
)
@click.option(
    "--confidence", type=options.LEVEL, default=0.95, help="Confidence level of the intervals."
)
@click.option("--resamples", "n_resamples", type=int, default=1000, help="Bootstrap resamples.")
@click.option(
    "--sample",
    "n_sample",
    type=COUNT,
    default=4096,
    help="Number of people of each group to sample for matching.",
)
@click.option(
    "--min-group-size", type=COUNT, default=30, help="Draw no conclusions about smaller groups."
)
@click.option(
    "--reference",
    metavar="GROUP",
    help="The group with which others are compared. By default the group with the highest rate "
    "for ratios, and the largest group for matchings.",
)
@options.seed("audit")
@click.option("--out", type=FILE, metavar="FILE.html", help="Write an HTML report.")
@click.option(
    "--filing",
    type=FILE,
    metavar="FILE",
    help="Write a short A4 document to file, as .html or, with Chromium, as .pdf.",
)
@options.several(
    "--filing-field",
    "filing_fields",
    metavar="FIELD=TEXT",
    help="A field of the filing: auditor, audit_date, period, data_source, data_explanation, "
    "tool or distribution_date.",
)
@click.option(
    "--label-words",
    metavar="NO,YES",
    help="Words for the negative and the positive label in the report, separated by a comma.",
)
@click.option("--json", type=FILE, metavar="FILE.json", help="Write the audit as JSON.")
@click.option(
    "--tables",
    "folder",
    type=FILE,
    metavar="DIR",
    help="Write rates and impact ratios by category as CSV, in the form of New York's Local Law "
    "144.",
)
@options.several(
    "--fail-above",
    metavar="GAP=BOUND",
    help="Exit with 1 if this gap of a model is above the bound.",
)
@options.several(
    "--fail-below",
    metavar="RATIO=BOUND",
    help="Exit with 1 if this ratio is below the bound, such as selection_ratio=0.8.",
)
@click.option(
    "--gate",
    type=click.Choice(tuple(MODES)),
    default="shown",
    help="When a gate fails: shown, if the whole confidence interval is beyond the bound; "
    "estimate, if the estimate is; upper, if any part of the interval is.",
)
@click.option(
    "--baseline",
    metavar="MODEL",
    help="A reference model to which the bounds do not apply.",
)
@options.about("audit")
@click.option("--no-individuals", is_flag=True, help="Leave out individual rows.")
@click.option(
    "--min-cell",
    type=COUNT,
    default=10,
    help="Without individuals, suppress smaller counts and everything that would reveal them.",
)
@options.columns(
    "--hide", help="Leave columns out of individual rows; 'individuals' leaves out all rows."
)
def audit(
    tables: tuple[str, ...],
    y_score: tuple[str, ...],
    classes: tuple[str, ...],
    unordered: bool,
    sensitive_features: tuple[str, ...],
    group_probabilities: tuple[str, ...],
    bands: tuple[str, ...],
    known: str | None,
    y_true: str | None,
    pos_label: str | None,
    accepted: tuple[str, ...],
    by: str | None,
    stages: tuple[str, ...],
    ids: str | None,
    sample_weight: str | None,
    features: tuple[str, ...],
    drop: tuple[str, ...],
    keep: tuple[str, ...],
    reading: dict[str, Any],
    models: tuple[str, ...],
    privileged: tuple[str, ...],
    out: str | None,
    filing: str | None,
    filing_fields: tuple[str, ...],
    label_words: str | None,
    json: str | None,
    folder: str | None,
    fail_above: tuple[str, ...],
    fail_below: tuple[str, ...],
    gate: str,
    baseline: str | None,
    no_individuals: bool,
    min_cell: int,
    hide: tuple[str, ...],
    **settings: Any,
) -> int:
    """Measure how scores treat groups of people, and who is treated like whom.

    TABLE is a .csv or .parquet file. Several files hold the same people. A quoted pattern such as
    'scores/*.parquet', or a folder, is one table that need not fit into memory.
    """
    from fairmatch.auditing.facts import Comparison
    from fairmatch.auditing.files import audit_files
    from fairmatch.auditing.impact import write_tables
    from fairmatch.auditing.streaming import audit_dataset, is_dataset
    from fairmatch.people.files import write_whole
    from fairmatch.people.roles import Roles, split_names

    if bool(sensitive_features) == bool(group_probabilities):
        raise click.UsageError(
            "Name the group of each person with --sensitive, or the probabilities of the groups "
            "with --group-probabilities."
        )
    if bool(stages) and bool(y_score or models):
        raise click.UsageError("--stages takes the place of --score and --model. Name one of them.")
    if known is not None and not group_probabilities:
        raise click.UsageError("--known is for groups that are estimated (--group-probabilities).")
    kind = settings["kind"]
    low, high = settings["score_range"] or (0.0, 1.0)
    gates = read_gates(
        fail_above, fail_below, has_labels=y_true is not None, kind=kind, width=high - low
    )
    _check_outputs(tables, out, json, folder, kind)
    words = [] if label_words is None else [word.strip() for word in label_words.split(",")]
    if words and len(words) != 2:
        raise InputError(
            f"--label-words must be two texts with a comma between them, got {label_words!r}."
        )
    fields = dict(field.partition("=")[::2] for field in filing_fields)
    report = _report() if out or filing else None
    if report is not None and filing:
        report.check_filing(filing, fields)
    roles = Roles(
        scores=y_score,
        sensitive=sensitive_features or group_probabilities,
        label=y_true,
        id=ids,
        weight=sample_weight,
        features=features or None,
        ignored=(*drop, *(name for name in (known, by) if name is not None)),
        kept=keep,
        numbers=(*group_probabilities, *(cut.partition("=")[0] for cut in bands)),
    )
    several = split_names(classes, ())
    favourable = settings["favourable"]
    if several and favourable is not None:
        settings["favourable"] = split_names(favourable, several)
    elif favourable not in ("high", "low", None) and not (several or models):
        raise InputError(
            f"favourable={favourable!r} is neither high nor low. With more than two classes, name "
            "them with --classes.",
            parameter="favourable",
        )
    found: Audit | Comparison
    with follow_steps(_STEPS * (len(tables) * len(y_score) + len(models)) + 1) as progress:
        shared = {"pos_label": pos_label, "show": print_roles, "progress": progress, **settings}
        if any(map(is_dataset, tables)):
            _refuse_options_of_one_file(tables)
            for name in ("weight_kind", "given", "similar", "categorical"):
                del shared[name]
            shared["favourable"] = favourable or "high"
            found = audit_dataset(tables[0], roles, **shared)
        else:
            found = audit_files(
                tables,
                roles,
                models=models,
                classes=several,
                unordered=unordered,
                accepted=accepted,
                privileged=privileged or None,
                reading=reading,
                estimated=bool(group_probabilities),
                known=known,
                cuts=dict(map(options.read_cut, bands)),
                by=by,
                stages=stages,
                **shared,
            )
    first = found.audits[0] if isinstance(found, Comparison) else found
    hidden = split_names(hide, [column.name for column in first.columns])
    # A column that is not there is an error, whether or not the rows are left out with it.
    if columns := [name for name in hidden if name != INDIVIDUALS]:
        found = found.hiding(*columns)
    if no_individuals or INDIVIDUALS in hidden:
        found = found.without_individuals(min_cell)
    audits = found.audits if isinstance(found, Comparison) else (found,)
    held = without_baseline(audits, baseline)
    print_audits(audits)
    if json:
        private = any(one.individuals is not None for one in audits)
        write_whole(json, found.to_json(indent=2), private=private)
        print(f"Facts: {json}")
    if report is not None and out:
        report.write_report(found, out, label_words=words)
        print(f"Report: {out}")
    if report is not None and filing:
        report.write_filing(found, filing, fields=fields, label_words=words)
        print(f"Filing: {filing}")
    if folder:
        for file in write_tables(audits, folder):
            print(f"Table: {file}")
    return hold_to(gates, held, gate)


def _refuse_options_of_one_file(tables: Sequence[str]) -> None:
    """Raise if something was typed that says nothing about many Parquet files."""
    if len(tables) > 1:
        raise InputError(
            "A pattern or a folder was given with another table. It stands for one table of "
            "scores, which is audited alone. Leave out the other tables."
        )
    given = click.get_current_context()
    for parameter in given.command.params:
        unused, why = _OF_ONE_FILE.get(parameter.name or "", (None, ""))
        if why and given.params[parameter.name or ""] != unused:
            option = parameter.opts[0]
            raise InputError(
                f"{option} was given with a pattern or a folder of Parquet files. {why} Leave "
                f"{option} out."
            )


def _check_outputs(
    tables: Sequence[str], out: str | None, json: str | None, folder: str | None, kind: str
) -> None:
    """Raise before the work where a result could not be written under its name."""
    from fairmatch.people.files import check_outputs

    check_outputs(tables, json=json, out=out)
    if folder is not None and kind == "number":
        raise InputError(
            "--tables was given with --kind number. Numeric predictions select no one, so there "
            "are no rates to file. Leave it out, or write the facts with --json."
        )
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"--tables must be a folder, and {folder} is a file. Name a folder.")
    options.check_page(out)


def _report() -> Any:
    """Return the module that writes reports, or raise before the audit is made."""
    try:
        from fairmatch.report import page

        page.require_report()
    except ImportError as error:
        raise MissingExtraError(
            f"The report cannot be made ({error}). Install what it needs with: pip install "
            "'fairmatch[report]', or write the facts with --json."
        ) from error
    return page


def print_audits(audits: Sequence[Audit]) -> None:
    """Print audits of the same people: rates, gaps, and the sentences about them.

    Parameters
    ----------
    audits : sequence of Audit
        One per model.
    """
    for audit in audits:
        (_print_rates if audit.kind == "probability" else _print_means)(audit)
        _print_classes(audit)
    level = f"{audits[0].confidence:.0%}"
    names = [gap.name for gap in audits[0].gaps]
    print_table(
        [f"gap [{level} interval]", *(audit.model_name for audit in audits)],
        [[name, *(_shown_gap(audit, name) for audit in audits)] for name in names],
    )
    if any(audit.pair_gaps for audit in audits):
        print(
            "Each gap is the largest over pairs of groups. By chance: what it would average if the "
            "groups did not differ."
        )
    shown = [gap for gap in audits[0].gaps if gap.detectable is not None]
    if shown:
        least = ", ".join(f"{gap.name} {gap.detectable:.4f}" for gap in shown)
        print(f"The smallest gaps that so many people would show in 80% of cases: {least}")
    for audit in audits:
        _print_given(audit)
        _print_periods(audit)
        _print_stages(audit)
        _print_rest(audit)


def _print_periods(audit: Audit) -> None:
    """Print the gap and the ratio of every period, and how differences change."""
    if not audit.periods:
        return
    from fairmatch.people.groups import with_spaces_shown

    level, first = f"{audit.confidence:.0%}", audit.periods[0].gaps[0].name
    print()
    rows = [
        [
            one.name,
            f"{sum(group.n_rows for group in one.groups):,}",
            _shown(next(gap for gap in one.gaps if gap.name == first)),
            *([] if audit.threshold is None else [_shown(one.selection_ratio)]),
        ]
        for one in audit.periods
    ]
    heads = [f"{first} [{level} interval]"] + ["smallest ratio"] * (audit.threshold is not None)
    print_table(["period", "people", *heads], rows)
    if not audit.changes:
        return
    print_table(
        ["change", "of", "group", "difference", f"change [{level} interval]", "p", "p (Holm)"],
        [
            [
                f"{one.before} to {one.after}",
                one.measure,
                f"{with_spaces_shown(one.group)} less {one.reference}",
                f"{one.differences[0]:z.4f} to {one.differences[1]:z.4f}",
                _shown(one.change),
                f"{one.p_value:.3g}",
                f"{one.p_adjusted:.3g}",
            ]
            for one in audit.changes
        ],
    )
    if len(audit.changes) > 1:
        print(f"p (Holm) is adjusted for these {len(audit.changes):,} tests.")


def _print_given(audit: Audit) -> None:
    """Print the differences of each group without and with the given factors."""
    from fairmatch.auditing.facts import Estimate

    if not audit.conditional:
        return
    level, decides = f"{audit.confidence:.0%}", audit.threshold is not None
    relative = f"odds ratio [{level} interval]" if decides else "relative"
    print()
    print_table(
        [
            f"given {audit.provenance.settings.get('given') or 'the factors'}",
            "difference",
            f"within strata [{level} interval]",
            relative,
            "p",
            "compared",
        ],
        [
            [
                f"{one.group} less {one.reference}",
                f"{one.marginal:z.4f}",
                _shown(one.adjusted),
                _shown((one.odds_ratio if decides else one.percent) or Estimate(None)),
                "" if one.p_value is None else f"{one.p_value:.3g}",
                f"{one.overlap[0]:.1%} and {one.overlap[1]:.1%}",
            ]
            for one in audit.conditional
        ],
    )
    print(
        "Within strata is the mean difference between people with the same given factors, and "
        "compared the share of both groups in strata that have people of both."
    )


def _print_stages(audit: Audit) -> None:
    """Print the rate and the ratio of every group, stage by stage."""
    if not audit.stages:
        return
    print()
    print_table(
        ["stage", "group", "people", f"rate [{audit.confidence:.0%} interval]", "ratio"],
        [
            [
                f"{one.stage} of {one.among}",
                own.category,
                f"{own.n_people:,}",
                *(
                    ("too few people", "")
                    if own.is_few
                    else (_shown(own.selection_rate), _shown(own.impact_ratio))
                ),
            ]
            for one in audit.stages
            for own in one.impact[-1].categories
        ],
    )


def _print_means(audit: Audit) -> None:
    """Print the mean prediction of each group."""
    print(f"{audit.model_name}: {audit.n_rows:,} people; predictions in units of the target")
    rows = [
        [
            group.label,
            f"{group.n_rows:,}",
            _shown(group.mean_score),
            "not compared" if group.label in audit.unknown else "",
        ]
        for group in audit.groups
    ]
    print_table(["group", "people", f"mean prediction [{audit.confidence:.0%} interval]", ""], rows)
    if audit.spread is not None:
        print(f"Standard deviation of the {audit.spread.of}: {audit.spread.value:.4f}")
    print()


def _print_rates(audit: Audit) -> None:
    from fairmatch.report.wording import base_words, selected_from

    print(
        f"{audit.model_name}: {audit.n_rows:,} people; {audit.outcome} means a "
        f"{selected_from(audit)}"
    )
    rows = []
    for group in audit.groups:
        ratio = "" if group.ratio is None else f"{group.ratio:.3f}"
        if group.label in audit.unknown:
            ratio = "not compared"
        rows.append([group.label, f"{group.n_rows:,}", _shown(group.selection_rate), ratio])
    print_table(
        ["group", "people", f"{audit.outcome} [{audit.confidence:.0%} interval]", "ratio"], rows
    )
    if audit.selection_ratio.value is not None:
        print(f"Smallest ratio: {_shown(audit.selection_ratio)}")
    if audit.ratio_reference is not None and (len(rows) > 2 or audit.is_reference_named):
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
        [group.label, f"{group.n_rows:,}", *(_shown(group.shares[name]) for name in facts.names)]
        for group in facts.groups
    ]
    print_table(["group", "people", *(f"gets {name}" for name in facts.names)], rows)
    rows = [[gap.name, _shown(gap)] for gap in facts.gaps]
    print_table([f"gap over all classes [{audit.confidence:.0%} interval]", ""], rows)
    print()


def _print_rest(audit: Audit) -> None:
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


def _shown(fact: Estimate | Gap) -> str:
    if fact.value is None:
        return "not stated"
    if fact.low is None or fact.high is None:
        return f"{fact.value:z.4f}"
    return f"{fact.value:z.4f} [{fact.low:z.4f}, {fact.high:z.4f}]"


def _shown_gap(audit: Audit, name: str) -> str:
    from fairmatch.people.groups import with_spaces_shown

    gap = audit.gap(name)
    shown = _shown(gap)
    if audit.pair_gaps and gap.expected is not None:
        shown += f" (by chance {gap.expected:.4f})"
    if gap.favoured is None or gap.groups is None:
        return shown
    other = next(label for label in gap.groups if label != gap.favoured)
    return f"{shown} {with_spaces_shown(gap.favoured)} ahead of {other}"
