"""Bounds on the gaps of an audit, for CI: which bounds are broken, and how surely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from math import inf
from typing import TYPE_CHECKING, Any

from fairmatch.auditing.gate import MODES, RATIO, Gate
from fairmatch.exceptions import InputError

if TYPE_CHECKING:
    from fairmatch.auditing.facts import Audit


def read_gates(asked: Any) -> list[Gate]:
    """Return the bounds that are typed, or raise if one cannot be checked."""
    from fairmatch.measures.registry import audited
    from fairmatch.people.outcome import OUTCOMES

    known = audited(OUTCOMES[asked.kind])
    if asked.kind == "number" and asked.fail_below:
        raise InputError(
            f"--fail-below {asked.fail_below[0]} was given with --kind number, and predictions "
            "select nobody, so there is no ratio. Hold a gap to a bound with --fail-above."
        )
    # Gaps of scores are at most the width of their range; those of predictions have units.
    low, high = asked.score_range or (0.0, 1.0)
    units = inf if asked.kind == "number" else high - low
    most = {name: 1.0 if own.unit == "share" else units for name, own in known.items()}
    gates = [_read(given, "--fail-above", most, "gap") for given in asked.fail_above]
    for gate in gates:
        if asked.kind != "number" and known[gate.name].needs_labels and asked.y_true is None:
            raise InputError(
                f"--fail-above {gate.name} needs the labels, and none were named. Name their "
                "column with --label."
            )
    below = [_read(given, "--fail-below", {RATIO: 1.0}, "ratio") for given in asked.fail_below]
    return gates + below


def _read(given: str, option: str, known: Mapping[str, float], what: str) -> Gate:
    """Return a bound that is typed. Facts are known by name, each with its largest value."""
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
    most = known[name]
    is_sensible = 0.0 < limit <= 1.0 if what == "ratio" else 0.0 <= limit < most
    if not is_sensible:
        example, range_ = ("0.8", "(0, 1]") if what == "ratio" else ("0.05", f"[0, {most:g})")
        raise InputError(
            f"{option} takes {what.upper()}=BOUND with a bound in {range_}, such as "
            f"{name}={example}; got {given!r}."
        )
    return Gate(name, limit)


def without_baseline(audits: Sequence[Audit], baseline: str | None) -> Sequence[Audit]:
    """Return the audits that are held to bounds: all but that of the baseline, if one is named."""
    names = [audit.model_name for audit in audits]
    if baseline is None:
        return audits
    if baseline not in names or len(names) == 1:
        why = "is not one of the models" if baseline not in names else "is the only model"
        raise InputError(
            f"--baseline {baseline!r} {why} ({', '.join(names)}). Name the model that is only a "
            "reference, or leave the option out."
        )
    return [audit for audit in audits if audit.model_name != baseline]


# What a gate that does not fail says: by default that is no proof that the bound is kept.
_PASSED = {
    "shown": "No gate fails: these people do not show that a bound is exceeded.",
    "estimate": "No gate fails: every estimate is within its bound.",
    "upper": "No gate fails: every confidence interval is within its bound.",
}


def hold_to(gates: Sequence[Gate], audits: Sequence[Audit], mode: str) -> int:
    """Print which bounds are broken and by which rule, and return the exit code."""
    broken = [found for one in gates for audit in audits if (found := one.broken(audit, mode))]
    if gates:
        print(f"\nGate {mode!r}: {MODES[mode]}.")
        print("\n".join(broken) or _PASSED[mode])
        if any(audit.periods for audit in audits):
            print("The bounds are for the whole table; single periods are not held to them.")
    return int(bool(broken))
