"""The command ``fairmatch plan``: how large a difference given numbers of people can show."""

from __future__ import annotations

from itertools import combinations
from math import isnan
from typing import Any

from fairmatch.cli.options import command
from fairmatch.cli.printing import print_table
from fairmatch.exceptions import InputError


@command("fairmatch plan --sizes 1500,400,60 --rate 0.3")
def plan(asked: Any) -> None:
    """Compute the smallest gap that an audit of groups of these sizes can detect."""
    from fairmatch.measures.planning import (
        chance_maximum,
        detectable_difference,
        detectable_mean_difference,
    )
    from fairmatch.measures.registry import of_averages

    try:
        people = [int(size) for size in asked.sizes.replace("_", "").split(",")]
    except ValueError:
        people = []
    if len(people) < 2 or min(people) < 1:
        raise InputError(
            f"--sizes takes the number of people in each of at least two groups, such as "
            f"1500,400,60; got {asked.sizes!r}."
        )
    # The share of the people whom a gap is about, and the rate that is expected, by class.
    of_class: dict[bool | None, tuple[float, float]] = {None: (1.0, asked.rate)}
    share, error_rates, deviation = asked.positive_share, asked.error_rates, asked.deviation
    if share is not None:
        right, wrong = error_rates or (asked.rate, asked.rate)
        of_class |= {True: (share, right), False: (1.0 - share, wrong)}
    elif error_rates:
        raise InputError("--error-rates was given without --positive-share. Name the share too.")
    planned = {
        own.name: of_class[own.labels[0]]
        for own in of_averages(decides=True).values()
        if own.is_difference and own.labels[0] in of_class
    }
    pairs = list(combinations(people, 2))
    level = {"confidence": asked.confidence, "power": asked.power}
    rows = []
    for one, other in pairs:
        found = [
            detectable_difference(
                (among * other, among * one), rate=own, n_comparisons=len(pairs), **level
            )
            for among, own in planned.values()
        ]
        shown = ["none" if isnan(value) else f"{value:.3f}" for value in found]
        if deviation is not None:
            mean = detectable_mean_difference(
                (other, one), (deviation, deviation), n_comparisons=len(pairs), **level
            )
            shown.append(f"{mean:.3g}")
        rows.append([f"{one:,} and {other:,}", *shown])
    heads = [*planned, *(["mean_parity_gap"] if deviation is not None else [])]
    expected = f"a rate of {asked.rate:g}"
    if error_rates:
        expected += ", a true positive rate of {:g} and a false positive rate of {:g}".format(
            *error_rates
        )
    print(
        f"Smallest gap whose {asked.confidence:.0%} interval excludes 0 with a probability of "
        f"{asked.power:.0%}, at {expected}:"
    )
    print_table(["people", *heads], rows)
    if len(pairs) > 1:
        print(
            f"The {len(pairs)} pairs share an error probability of {1 - asked.confidence:.2g}, as "
            "in an audit."
        )
    if any("none" in row for row in rows):
        print("none: at this rate, even the largest possible gap would be detected less often.")
    several = "the largest gap over pairs" if len(pairs) > 1 else "the gap"
    print(
        f"If the groups do not differ at all, {several} of selection rates still averages "
        f"{chance_maximum(people, rate=asked.rate):.3f}."
    )
