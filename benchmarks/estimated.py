"""How often the answers about estimated groups hold the true gap.

python -m benchmarks.estimated 400

People live in 40 areas, each with probabilities of its groups, from which the group of a person is
drawn. So the probabilities are calibrated. A person's decision depends on her area alone, or also
on her group. One line of records/estimated.jsonl is written for each study; studies that it has are
not repeated.
"""

import json
import sys
from pathlib import Path

import numpy as np

from fairmatch.measures.estimated import (
    EstimatedPeople,
    assumed_difference,
    bounded_difference,
    calibrated_difference,
)

RECORDS = Path(__file__).parent / "records" / "estimated.jsonl"
N_ROWS, N_TRUTH, LEVEL = 4000, 1_000_000, 0.95


def draw(generator, areas, n_rows, *, dependent):
    """Return probabilities, groups, decisions and labels of people."""
    area = generator.integers(len(areas), size=n_rows)
    probabilities = areas[area]
    groups = (generator.random(n_rows)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    merit = generator.normal(size=n_rows) + 0.1 * (area % 5) - 0.6 * dependent * (groups == 0)
    decisions = (merit + 0.5 * generator.normal(size=n_rows) > 0.2).astype(float)
    return probabilities, groups, decisions, generator.random(n_rows) < 1 / (1 + np.exp(-merit))


def study(n_groups, within, dependent, known, n_draws, seed=2026):
    """Return how often each interval holds the true difference of the first two groups."""
    generator = np.random.default_rng([seed, n_groups, within, dependent])
    areas = generator.dirichlet(np.full(n_groups, 0.7), size=40)
    _, groups, decisions, labels = draw(generator, areas, N_TRUTH, dependent=dependent)
    inside = labels if within else np.ones(N_TRUTH, dtype=bool)
    first, second = (decisions[(groups == own) & inside].mean() for own in (0, 1))
    truth, held = first - second, np.zeros(3)
    widths, bounds = [], []
    for _ in range(n_draws):
        probabilities, groups, decisions, labels = draw(
            generator, areas, N_ROWS, dependent=dependent
        )
        people = EstimatedPeople(
            decisions,
            probabilities,
            np.ones(N_ROWS),
            np.arange(N_ROWS),
            labels if within else None,
        )
        limits = [assumed_difference(people, (0, 1)).limits(LEVEL)]
        low, high = bounded_difference(people, (0, 1), generator.integers(2, size=N_ROWS))
        limits.append((low.limits(LEVEL)[0], high.limits(LEVEL)[1]))
        seen = np.where(generator.random(N_ROWS) < known, groups, -1)
        found = calibrated_difference(people, (0, 1), seen)
        limits.append(found.limits(LEVEL, (seen >= 0).sum() - 1.0))
        held += [low <= truth <= high for low, high in limits]
        widths.append([high - low for low, high in limits])
        bounds.append([own.value for own in bounded_difference(people, (0, 1))])
    return {
        "n_groups": n_groups,
        "within_a_class": within,
        "dependent": dependent,
        "known": known,
        "n_draws": n_draws,
        "truth": round(float(truth), 4),
        "analytic": analytic(areas, dependent) if not within else None,
        "bounds": np.mean(bounds, axis=0).round(4).tolist(),
        "held": dict(zip(("assumed", "bounds", "calibrated"), held / n_draws, strict=True)),
        "width": dict(
            zip(
                ("assumed", "bounds", "calibrated"),
                np.mean(widths, axis=0).round(4).tolist(),
                strict=True,
            )
        ),
    }


def analytic(areas, dependent):
    """Return Fréchet's bounds of the difference from the true rates of the areas."""
    generator = np.random.default_rng(0)
    noise = generator.normal(size=200_000) + 0.5 * generator.normal(size=200_000)
    rates = []
    for area, own in enumerate(areas):
        shift = 0.1 * (area % 5)
        by_group = [(noise + shift - 0.6 * dependent * (g == 0) > 0.2).mean() for g in (0, 1)]
        rates.append(own[0] * by_group[0] + (1.0 - own[0]) * by_group[1])
    rate, sizes = np.array(rates), areas.mean(axis=0)
    first, second = areas[:, 0], areas[:, 1]
    most = np.minimum(rate, first).mean() / sizes[0]
    least = np.maximum(rate + first - 1.0, 0.0).mean() / sizes[0]
    others = np.minimum(rate, second).mean() / sizes[1]
    fewest = np.maximum(rate + second - 1.0, 0.0).mean() / sizes[1]
    return [round(float(least - others), 4), round(float(most - fewest), 4)]


def main():
    """Print one line of a table per study."""
    n_draws = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    done = []
    if RECORDS.exists():
        done = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    keys = ("n_groups", "within_a_class", "dependent", "known")
    for n_groups in (2, 4):
        for within in (False, True):
            for dependent in (False, True):
                for known in (0.05, 0.2):
                    wanted = n_groups, within, dependent, known
                    if any(tuple(own[key] for key in keys) == wanted for own in done):
                        continue
                    found = study(*wanted, n_draws)
                    with RECORDS.open("a") as file:
                        file.write(json.dumps(found) + "\n")
                    print(found, flush=True)


if __name__ == "__main__":
    main()
