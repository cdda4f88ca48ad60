"""Bounds on a gap or a ratio, which are read before the work and checked after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING

from fairmatch.exceptions import GroupError, InputError

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit, Estimate, Gap

RATIO = "selection_ratio"
"""Name of the ratio. A ratio may be too small, and a gap may be too large."""

# Facts without a meaning where nobody or everybody is selected.
_OF_DECISIONS = frozenset(
    ("demographic_parity_gap", "true_positive_gap", "false_positive_gap", "equalized_odds_gap")
) | {RATIO}


@dataclass(frozen=True)
class Gate:
    """An upper bound on a gap, or a lower bound on the ratio of selection rates.

    Attributes
    ----------
    name : str
        Name of the gap, or of the ratio.
    bound : float
        The bound.
    """

    name: str
    bound: float

    @property
    def is_ratio(self) -> bool:
        """Whether the fact may be too small, rather than too large."""
        return self.name == RATIO

    def fact(self, audit: Audit) -> Gap | Estimate:
        """Return the fact of an audit that is held to the bound."""
        return audit.selection_ratio if self.is_ratio else audit.gap(self.name)

    def broken(self, audit: Audit, gate: str) -> str | None:
        """Return in words how an audit breaks the bound, or None where it does not.

        Raise if the fact is not stated, or nobody or everybody is selected.

        Parameters
        ----------
        audit : Audit
            The audit.
        gate : {"estimate", "upper"}
            Whether the estimate is held to the bound, or the worse limit of its interval.
        """
        if self.name in _OF_DECISIONS and audit.undecided:
            raise GroupError(
                f"{self.name} of {audit.model_name} cannot pass a gate. {audit.undecided} Choose "
                "another --threshold, or hold the scores to a bound (mean_parity_gap)."
            )
        fact = self.fact(audit)
        value, words = fact.value, self.name
        if gate == "upper":
            value = fact.low if self.is_ratio else fact.high
            words = f"the {'lower' if self.is_ratio else 'upper'} limit of {self.name}"
        if value is None:
            raise GroupError(f"{self.name} of {audit.model_name} is not stated. {fact.refused}")
        if value < self.bound if self.is_ratio else value > self.bound:
            side, sign = ("Below", "<") if self.is_ratio else ("Above", ">")
            shown = f"{value:.4f} {sign} {self.bound:g}"
            return f"{side} the bound: {words} of {audit.model_name}, {shown}"
        return None


def read_gates(
    above: Sequence[str], below: Sequence[str], *, has_labels: bool, scale: str = "probability"
) -> list[Gate]:
    """Return the bounds that are typed, or raise if one cannot be checked.

    Parameters
    ----------
    above : sequence of str
        Bounds on gaps, such as ``"mean_parity_gap=0.05"``.
    below : sequence of str
        Bounds on the ratio, such as ``"selection_ratio=0.8"``.
    has_labels : bool
        Whether the audit has labels.
    scale : {"probability", "real"}, default="probability"
        What is audited. Gaps of predictions have units, and may exceed 1.
    """
    from fairmatch.measures import MEASURES
    from fairmatch.measures.real import REAL_GAPS

    if scale == "real":
        if below:
            raise InputError(
                f"--fail-below {below[0]} was given with --scale real, and predictions select "
                "nobody, so there is no ratio. Hold a gap to a bound with --fail-above."
            )
        return [_read(given, "--fail-above", list(REAL_GAPS), "gap", inf) for given in above]
    gates = [_read(given, "--fail-above", list(MEASURES), "gap") for given in above]
    for gate in gates:
        if MEASURES[gate.name].needs_labels and not has_labels:
            raise InputError(
                f"--fail-above {gate.name} needs the labels, and none were named. Name their "
                "column with --label."
            )
    return gates + [_read(given, "--fail-below", [RATIO], "ratio") for given in below]


def _read(given: str, option: str, known: list[str], what: str, most: float = 1.0) -> Gate:
    name, _, bound = given.partition("=")
    if name not in known:
        if name == RATIO:
            raise InputError(
                f"{option} holds a gap to an upper bound, and {RATIO} has a lower one. Type "
                f"--fail-below {given}."
            )
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise InputError(
            f"{option}: there is no {what} {name!r}. {hint}There are: {', '.join(known)}."
        )
    try:
        limit = float(bound)
    except ValueError:
        limit = float("nan")
    # No gap is above 1, no ratio is below 0, and nothing is above NaN. Such a gate never fails.
    most = 1.0 if name == "ks_parity_gap" else most
    is_sensible = 0.0 < limit <= 1.0 if what == "ratio" else 0.0 <= limit < most
    if not is_sensible:
        example, range_ = ("0.8", "(0, 1]") if what == "ratio" else ("0.05", f"[0, {most:g})")
        raise InputError(
            f"{option} takes {what.upper()}=BOUND with a bound in {range_}, such as "
            f"{name}={example}; got {given!r}."
        )
    return Gate(name, limit)


def hold_to(gates: Sequence[Gate], audits: Sequence[Audit], gate: str) -> int:
    """Print which bounds are broken, and return the exit code.

    Parameters
    ----------
    gates : sequence of Gate
        The bounds.
    audits : sequence of Audit
        The audits that are held to them.
    gate : {"estimate", "upper"}
        Whether the estimate is held to the bounds, or the worse limit of its interval.
    """
    broken = [found for one in gates for audit in audits if (found := one.broken(audit, gate))]
    for line in broken:
        print(line)
    return int(bool(broken))
