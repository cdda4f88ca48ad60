"""Small numbers of people, withheld from an audit that shows no individuals."""

from __future__ import annotations

import re
from dataclasses import replace

from fairmatch.auditing.facts import (
    AttributeFacts,
    Audit,
    CalibrationBin,
    CategoryImpact,
    ConditionalFacts,
    Estimate,
    Gap,
    GroupFacts,
    ImpactTable,
    Matching,
    ModelPair,
    StratumFacts,
    SubsetScan,
)
from fairmatch.exceptions import InputError

MIN_CELL = 10
"""The smallest number of people that an audit without individuals shows."""

_NUMBER = re.compile(r"\b(\d[\d,]*)(?= (?:people|person|rows?)\b)|(?<=: )(\d[\d,]*)(?=[,)])")


def suppress(audit: Audit, min_cell: int) -> Audit:
    """Return an audit without numbers of people from 1 to ``min_cell`` - 1, and what tells them.

    Groups of fewer people are left out of the lists and of the totals. A rate is withheld if fewer
    people are on one of its sides, and so is whatever would reveal it: ratios, gaps, tests and the
    total of the selected. Counts in charts are rounded to multiples of ``min_cell``.
    """
    for group in audit.groups:
        if group.n_rows < min_cell and group.mean_score.value is not None:
            raise InputError(
                f"min_cell={min_cell} withholds the group {group.label!r}, and gaps rest on it. "
                f"Audit with min_group_size={min_cell}.",
                parameter="min_cell",
            )
    settings = audit.provenance.settings
    if "min_cell" in settings:  # withheld already
        return audit
    provenance = replace(audit.provenance, settings={**settings, "min_cell": min_cell})
    return replace(_Suppressor(min_cell).audit(audit), provenance=provenance)


def suppress_pair(pair: ModelPair, groups: tuple[GroupFacts, ...], min_cell: int) -> ModelPair:
    """Return how two models differ, with counts rounded to multiples of ``min_cell``."""
    kept = {group.label for group in groups if group.n_rows >= min_cell}

    def rounded(count: int) -> int:
        return min_cell * round(count / min_cell)

    flips = pair.undesirable_flips
    return replace(
        pair,
        rank_agreement={name: v for name, v in pair.rank_agreement.items() if name in kept},
        decisions={
            name: (rounded(own[0]), rounded(own[1]), rounded(own[2]), rounded(own[3]))
            for name, own in pair.decisions.items()
            if name in kept
        },
        undesirable_flips=None
        if flips is None
        else {name: rounded(own) for name, own in flips.items() if name in kept},
    )


class _Suppressor:
    """One rule for all facts of an audit."""

    def __init__(self, min_cell: int) -> None:
        self.least = min_cell
        self.reason = f"Withheld: it would reveal a number of people below {min_cell}."

    def few(self, count: float) -> bool:
        """Return whether a count is small and not 0."""
        return 0 < round(count) < self.least

    def rounded(self, count: int) -> int:
        return self.least * round(count / self.least)

    def told(self, text: str) -> str:
        """Return a sentence in which small numbers of people are not stated."""

        def replaced(found: re.Match[str]) -> str:
            number = int(found[0].replace(",", ""))
            return f"fewer than {self.least}" if self.few(number) else found[0]

        return _NUMBER.sub(replaced, text)

    def rate(self, fact: Estimate | None, size: float) -> Estimate | None:
        """Return a rate of so many people, or why it is withheld."""
        if fact is None or fact.value is None:
            refused = None if fact is None or fact.refused is None else self.told(fact.refused)
            return None if fact is None else replace(fact, refused=refused)
        hits = fact.value * size
        if self.few(size) or self.few(hits) or self.few(size - hits):
            return Estimate(None, refused=self.reason)
        return fact

    def stated(self, fact: Estimate, size: float) -> Estimate:
        found = self.rate(fact, size)
        assert found is not None
        return found

    def audit(self, audit: Audit) -> Audit:
        known = {group.label: group for group in audit.groups}
        small = [group for group in audit.groups if group.n_rows < self.least]
        kept = [group for group in audit.groups if group.n_rows >= self.least]
        decided = bool(audit.score_values) and set(audit.score_values) <= {0.0, 1.0}
        groups = tuple(self.group(group, decided) for group in kept)
        changed = {own.label: _changed(known[own.label], own) for own in groups}
        notes = [self.told(note) for note in audit.notes]
        notes.append(
            f"Numbers of people from 1 to {self.least - 1} are withheld, and so are rates that "
            f"would reveal them. Counts in charts are rounded to multiples of {self.least}."
        )
        if small:
            names = ", ".join(repr(group.label) for group in small)
            notes.append(f"Groups of fewer than {self.least} people are left out: {names}.")
        hidden = {label for label, fields in changed.items() if "selection_rate" in fields}
        base = audit.ratio_reference
        groups = tuple(
            replace(own, ratio=None) if {own.label, base} & hidden else own for own in groups
        )
        tables = tuple(map(self.table, audit.impact))
        withheld = hidden or small or any(_hides(own) for own in tables)
        # Attributes by themselves would tell, by subtraction, who is in a small combination.
        alone = () if small else audit.attributes
        attributes = tuple(
            self.attribute(one, decided)
            for one in alone
            if all(group.n_rows >= self.least for group in one.groups)
        )
        ratio = Estimate(None, refused=self.reason) if hidden else audit.selection_ratio
        return replace(
            audit,
            individuals=None,
            n_rows=audit.n_rows - sum(group.n_rows for group in small),
            n_selected=None if withheld else audit.n_selected,
            groups=groups,
            unknown=tuple(name for name in audit.unknown if name in changed),
            selection_ratio=ratio,
            gaps=tuple(self.gap(gap, changed, decided) for gap in audit.gaps),
            pair_gaps=tuple(self.gap(gap, changed, decided) for gap in audit.pair_gaps),
            attributes=attributes,
            impact=tables[-1:] if small else tables,
            matchings=tuple(self.matching(own) for own in audit.matchings),
            subsets=None if audit.subsets is None else self.subsets(audit.subsets, known),
            conditional=tuple(self.conditional(own) for own in audit.conditional),
            columns=tuple(
                replace(own, n_missing=self.rounded(own.n_missing)) for own in audit.columns
            ),
            notes=tuple(notes),
        )

    def attribute(self, one: AttributeFacts, decided: bool) -> AttributeFacts:
        groups = tuple(self.group(group, decided) for group in one.groups)
        changed = {
            own.label: _changed(before, own) for before, own in zip(one.groups, groups, strict=True)
        }
        hidden = {name for name, fields in changed.items() if "selection_rate" in fields}
        nothing = Estimate(None, refused=self.reason)
        return replace(
            one,
            groups=tuple(
                replace(own, ratio=None) if {own.label, one.ratio_reference} & hidden else own
                for own in groups
            ),
            selection_ratio=nothing if hidden else one.selection_ratio,
            gaps=tuple(self.gap(gap, changed, decided) for gap in one.gaps),
            pair_gaps=tuple(self.gap(gap, changed, decided) for gap in one.pair_gaps),
        )

    def group(self, group: GroupFacts, decided: bool) -> GroupFacts:
        size = group.effective_size or group.n_rows
        selection = self.stated(group.selection_rate, size)
        mean = group.mean_score
        if decided and selection.value is None and mean.value is not None:
            mean = selection
        positive = (group.base_rate.value if group.base_rate else None) or 0.0
        base = self.rate(group.base_rate, size)
        classes = {
            "true_positive_rate": positive * size,
            "false_positive_rate": size * (1 - positive),
        }
        rates = {name: self.rate(getattr(group, name), n) for name, n in classes.items()}
        if base is not None and base.value is None:  # the classes themselves are small
            rates = {
                name: own and Estimate(None, refused=own.refused or self.reason)
                for name, own in rates.items()
            }
        few_values = self.few(positive * size) or self.few(size * (1 - positive))
        return replace(
            group,
            selection_rate=selection,
            mean_score=replace(mean, refused=mean.refused and self.told(mean.refused)),
            score_counts=tuple(map(self.rounded, group.score_counts)),
            base_rate=base,
            accuracy=self.rate(group.accuracy, size),
            true_positive_rate=rates["true_positive_rate"],
            false_positive_rate=rates["false_positive_rate"],
            auc=Estimate(None, refused=self.reason) if group.auc and few_values else group.auc,
            calibration=tuple(map(self.bin, group.calibration)),
        )

    def bin(self, own: CalibrationBin) -> CalibrationBin:
        rate = self.stated(own.positive_rate, own.n_rows)
        mean = None if self.few(own.n_rows) else own.mean_score
        return replace(own, n_rows=self.rounded(own.n_rows), mean_score=mean, positive_rate=rate)

    def gap(self, gap: Gap, changed: dict[str, set[str]], decided: bool) -> Gap:
        """Return a gap, or why it is withheld: a rate that it is made of is."""
        needs = {
            "demographic_parity_gap": {"selection_rate"},
            "true_positive_gap": {"true_positive_rate"},
            "false_positive_gap": {"false_positive_rate"},
            "equalized_odds_gap": {"true_positive_rate", "false_positive_rate"},
        }.get(gap.name, {"selection_rate"} if decided else set())
        # The limits of a largest gap come from all groups.
        if gap.value is None or not any(needs & fields for fields in changed.values()):
            return replace(gap, refused=gap.refused and self.told(gap.refused))
        return Gap(gap.name, gap.symbol, *(None,) * 5, "no statement", self.reason)

    def table(self, table: ImpactTable) -> ImpactTable:
        kept = [own for own in table.categories if own.n_people >= self.least]
        hidden = {own.category for own in kept if self.hides(own)}
        every = hidden if table.most_selected not in hidden else {own.category for own in kept}
        unknown = table.n_unknown
        return replace(
            table,
            categories=tuple(self.category(own, hidden, every) for own in kept),
            n_people=sum(own.n_people for own in kept),
            n_unknown=None if unknown is not None and self.few(unknown) else unknown,
        )

    def hides(self, own: CategoryImpact) -> bool:
        selected = own.n_selected or 0
        return self.few(selected) or self.few(own.n_people - selected)

    def category(self, own: CategoryImpact, hidden: set[str], every: set[str]) -> CategoryImpact:
        nothing = Estimate(None, refused=self.reason)
        size = own.effective_size or own.n_people
        scoring = self.rate(own.scoring_rate, size)
        own = replace(
            own,
            scoring_rate=scoring,
            scoring_ratio=nothing if scoring and scoring.value is None else own.scoring_ratio,
        )
        if own.category in hidden:
            own = replace(own, n_selected=None, selection_rate=nothing, weight_selected=None)
        if own.category not in every:
            return own
        return replace(
            own,
            impact_ratio=nothing,
            below_four_fifths=None,
            p_value=None,
            p_adjusted=None,
            standard_deviations=None,
            exact_standard_deviations=None,
            shortfall=None,
            flips=None,
        )

    def matching(self, own: Matching) -> Matching:
        n_least = min(own.n_sampled)

        def pair(share: float) -> bool:
            return self.few(share * n_least)

        gaps = []
        for found in own.matched_gaps:
            flips = found.flips
            if flips is not None and any(
                map(pair, (flips.both, flips.neither, flips.first_only, flips.second_only))
            ):
                flips = None
            shares = tuple(0.0 if pair(share) else share for share in found.histogram)
            ends = {k: v for k, v in found.quantiles.items() if k not in ("0", "1")}
            gaps.append(replace(found, flips=flips, histogram=shares, quantiles=ends))
        sizes = dict(zip(own.groups or (), own.n_sampled, strict=False))
        reach = tuple(
            replace(
                one,
                share=self.stated(one.share, sizes.get(one.group, n_least)),
                has_near=self.stated(one.has_near, sizes.get(one.group, n_least)),
            )
            for one in own.reach
        )
        return replace(
            own,
            matched_gaps=tuple(gaps),
            reach=reach,
            refused=own.refused and self.told(own.refused),
        )

    def subsets(self, scan: SubsetScan, known: dict[str, GroupFacts]) -> SubsetScan:
        kept = []
        for subset in scan.subsets:
            whole = [known[name].n_rows for name in subset.groups or () if name in known]
            rest = [all_ - own for all_, own in zip(whole, subset.n_rows, strict=False)]
            if not any(map(self.few, (*subset.n_rows, *rest))):
                kept.append(subset)
        return replace(
            scan, subsets=tuple(kept), refused=tuple(self.told(text) for text in scan.refused)
        )

    def conditional(self, facts: ConditionalFacts) -> ConditionalFacts:
        def small(stratum: StratumFacts) -> bool:
            sizes = stratum.group_size, stratum.reference_size
            levels = stratum.group_level, stratum.reference_level
            hits = [(level or 0.0) * size for level, size in zip(levels, sizes, strict=True)]
            rest = [size - hit for size, hit in zip(sizes, hits, strict=True)]
            return any(map(self.few, (*sizes, *hits, *rest)))

        kept = [stratum for stratum in facts.strata if not small(stratum)]
        if len(kept) == len(facts.strata) - 1 and kept:
            kept.pop()  # the last and smallest, or the totals would give the other one away
        return replace(facts, strata=tuple(kept))


def _changed(before: GroupFacts, after: GroupFacts) -> set[str]:
    """Return the rates of a group that are withheld."""
    rates: list[str] = ["selection_rate", "true_positive_rate", "false_positive_rate"]

    def stated(group: GroupFacts, name: str) -> bool:
        fact = getattr(group, name)
        return fact is not None and fact.value is not None

    return {name for name in rates if stated(before, name) and not stated(after, name)}


def _hides(table: ImpactTable) -> bool:
    return any(own.n_selected is None for own in table.categories)
