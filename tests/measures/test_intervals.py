"""Intervals against SciPy, against textbook figures, and by simulation of their coverage."""

import inspect

import numpy as np
import pytest
from scipy import stats

from fairmatch.measures.distributions import GroupScores, Settings
from fairmatch.measures.intervals import (
    ScoreGrid,
    fold,
    mean_difference,
    mean_interval,
    mean_of_rate_gaps,
    norm_interval,
    pair_mean,
    rate_difference,
    rate_differences,
    rate_gaps_limit,
    rate_over_rate,
    wilson,
)
from fairmatch.people.weights import Weights


@pytest.mark.parametrize(("count", "n_rows"), [(0, 12), (1, 12), (6, 12), (12, 12), (300, 1000)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_agrees_with_scipy(count, n_rows, confidence):
    known = stats.binomtest(count, n_rows).proportion_ci(confidence, method="wilson")
    assert wilson(count, n_rows, confidence) == pytest.approx((known.low, known.high), abs=1e-12)


# The worked examples of Newcombe (1998), method 10; the second group minus the first.
@pytest.mark.parametrize(
    ("counts", "n_rows", "limits"),
    [
        ((48, 56), (80, 70), (0.0524, 0.3339)),
        ((0, 5), (29, 56), (-0.0381, 0.1926)),
        ((0, 0), (20, 10), (-0.1611, 0.2775)),
        ((0, 10), (20, 10), (0.6791, 1.0)),
    ],
)
def test_rate_difference_agrees_with_newcombes_table(counts, n_rows, limits):
    assert rate_difference(counts, n_rows, 0.95) == pytest.approx(limits, abs=2e-4)


@pytest.mark.parametrize(
    ("counts", "n_rows", "limits"),
    [((3, 9), (10, 10), (0.1705, 0.8090)), ((2, 6), (7, 7), (0.0582, 0.8062))],
)
def test_where_one_or_two_are_on_one_side_the_interval_is_wider_than_newcombes(
    counts, n_rows, limits
):
    low, high = rate_difference(counts, n_rows, 0.95)
    assert limits[0] - 0.1 < low <= limits[0] + 1e-4
    assert limits[1] - 1e-4 <= high < limits[1] + 0.1


def _exact_coverage(rates, sizes):
    """Chance that the folded interval holds the gap: the sum over all counts."""
    both = np.meshgrid(*(np.arange(n + 1.0) for n in sizes), indexing="ij")
    low, high = rate_differences(np.stack([k.ravel() for k in both]), sizes, 0.95)
    least = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    most = np.maximum(np.abs(low), np.abs(high))
    shares = [stats.binom.pmf(np.arange(n + 1), n, p) for n, p in zip(sizes, rates, strict=True)]
    gap = abs(rates[0] - rates[1])
    held = (least <= gap + 1e-12) & (gap <= most + 1e-12)
    return float(np.outer(*shares).ravel()[held].sum())


@pytest.mark.parametrize("sizes", [(30, 30), (30, 100), (30, 1000), (200, 200)])
def test_intervals_of_rates_cover_exactly(sizes):
    grid = (0.002, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.9, 0.98)
    found = {
        (p, q): _exact_coverage((p, q), sizes) for p in grid for q in grid if abs(p - q) < 0.75
    }
    assert min(found.values()) >= 0.929


def test_folding_puts_zero_where_the_signed_interval_holds_it():
    assert fold((-0.2, 0.1)) == (0.0, 0.2)
    assert fold((0.1, 0.2)) == (0.1, 0.2)
    assert fold((-0.2, -0.1)) == (0.1, 0.2)


@pytest.mark.parametrize("counts", [(30, 45), (0, 20), (50, 50), (1, 49)])
def test_rate_over_rate_does_not_depend_on_which_group_is_first(counts):
    sizes = (50, 60)
    low, high = rate_over_rate(counts, sizes, 0.95)
    first, second = (k / n for k, n in zip(counts, sizes, strict=True))
    assert 0.0 <= low <= first / second <= high
    if first > 0.0:
        back = rate_over_rate(counts[::-1], sizes[::-1], 0.95)
        assert (1.0 / high, 1.0 / low) == pytest.approx(back, abs=1e-9)


def test_rate_over_rate_covers():
    generator = np.random.default_rng(0)
    sizes, rates, n_draws = (120, 80), (0.3, 0.4), 500
    counts = np.stack(
        [generator.binomial(n, p, n_draws) for n, p in zip(sizes, rates, strict=True)], axis=1
    )
    limits = [rate_over_rate(tuple(k), sizes, 0.95) for k in counts]
    assert np.mean([low <= 0.75 <= high for low, high in limits]) >= _least(n_draws)


def _least(n_draws, confidence=0.95):
    """Coverage that a right interval falls short of once in a thousand times."""
    return confidence - 3.1 * np.sqrt(confidence * (1 - confidence) / n_draws)


# Scores of the second group are those of the first, moved up: every gap is known.
_DRAWS = 120


def _draw(generator, size, shift):
    low, high = 0.85 * generator.beta(2, 3, (2, size))
    return low, high + shift


def _true_gaps(shift):
    if shift == 0.0:
        return dict.fromkeys(
            ("mean_gap", "wasserstein", "kolmogorov_smirnov", "total_variation"), 0
        )
    edges = np.linspace(0, 1, 21)
    law = stats.beta(2, 3, scale=0.85)
    grid = np.linspace(0, 1, 20001)
    cells = np.diff(law.cdf(edges)) - np.diff(law.cdf(edges - shift))
    return {
        "mean_gap": shift,
        "wasserstein": shift,
        "kolmogorov_smirnov": np.abs(law.cdf(grid) - law.cdf(grid - shift)).max(),
        "total_variation": np.abs(cells).sum() / 2,
    }


@pytest.mark.parametrize("n_rows", [200, 2000])
@pytest.mark.parametrize("shift", [0.0, 0.02, 0.1])
def test_intervals_of_score_gaps_cover_at_their_stated_rate(shift, n_rows):
    generator = np.random.default_rng(7)
    truth = _true_gaps(shift)
    hits = dict.fromkeys(truth, 0)
    for _ in range(_DRAWS):
        scores = _draw(generator, n_rows // 2, shift)
        grid = ScoreGrid(scores, n_resamples=150, generator=generator)
        for name, value in truth.items():
            spread = getattr(grid, name)(0.95)
            hits[name] += spread.low <= value <= spread.high
    assert {name: h / _DRAWS for name, h in hits.items() if h / _DRAWS < _least(_DRAWS)} == {}


@pytest.mark.parametrize("n_rows", [200, 2000])
@pytest.mark.parametrize("gap", [0.0, 0.02, 0.1])
def test_intervals_of_rate_gaps_cover_at_their_stated_rate(gap, n_rows):
    generator = np.random.default_rng(8)
    n_draws, size = 1000, n_rows // 2
    counts = generator.binomial(size, [0.3, 0.3 + gap], (n_draws, 2))
    limits = [fold(rate_difference(tuple(k), (size, size), 0.95)) for k in counts]
    assert np.mean([low <= gap <= high for low, high in limits]) >= _least(n_draws)


@pytest.mark.parametrize("n_rows", [200, 2000])
@pytest.mark.parametrize("gaps", [(0.0, 0.0), (0.02, 0.0), (0.1, 0.1)])
def test_intervals_of_equalized_odds_cover_at_their_stated_rate(gaps, n_rows):
    generator = np.random.default_rng(9)
    n_draws, size = 300, n_rows // 4
    rates = np.array([[0.6, 0.6 + gaps[0]], [0.2, 0.2 + gaps[1]]])
    sizes = ((size, size), (size, size))
    hits = 0
    for counts in generator.binomial(size, rates, (n_draws, 2, 2)):
        low, high = mean_of_rate_gaps(counts, sizes, 0.95, n_resamples=300, generator=generator)
        hits += low <= sum(gaps) / 2 <= high
    assert hits / n_draws >= _least(n_draws)


def test_interval_of_a_mean_over_pairs_covers_and_respects_shared_people():
    generator = np.random.default_rng(10)
    n_draws, n_members = 300, 60
    hits = 0
    for _ in range(n_draws):
        own = generator.exponential(0.1, n_members)
        values = np.repeat(own, 3)  # each person has three partners with the same gap
        mass = np.full(len(values), 1 / len(values))
        members = np.repeat(np.arange(n_members), 3)
        low, high = pair_mean(values, mass, members, 0.9, n_resamples=300, generator=generator)
        hits += low <= 0.1 <= high
    assert hits / n_draws >= _least(n_draws, 0.9) - 0.02  # the percentile's own error at n = 60


def _exact(scores):
    first, second = (GroupScores(own, Weights(len(own))) for own in scores)
    return first.distances(second), first.total_variation(second, Settings(bins=20))


@pytest.mark.parametrize("sizes", [(40, 70), (3000, 2000)])
def test_the_grid_knows_the_exact_gaps(sizes):
    generator = np.random.default_rng(11)
    scores = generator.beta(2, 3, sizes[0]), generator.beta(3, 3, sizes[1])
    grid = ScoreGrid(scores, n_resamples=100, generator=generator)
    exact, total_variation = _exact(scores)
    ends = grid._bin_ends
    binned = np.diff(grid._estimate[ends], prepend=0.0)
    assert np.abs(binned).sum() / 2 == pytest.approx(total_variation, abs=1e-12)
    assert np.abs(grid._estimate).max() == pytest.approx(exact.kolmogorov_smirnov, abs=4e-3)
    area = np.abs(grid._estimate[:-1]) @ np.diff(grid.values)
    assert area == pytest.approx(exact.wasserstein, abs=1e-4)


def test_the_permutation_test_is_that_of_scipy():
    generator = np.random.default_rng(12)
    scores = generator.beta(2, 3, 60), generator.beta(2.6, 3, 50)
    grid = ScoreGrid(scores, n_resamples=4000, generator=generator)
    # SciPy before 1.15 has another name for the seed.
    new = "rng" in inspect.signature(stats.permutation_test).parameters
    known = stats.permutation_test(
        scores,
        stats.wasserstein_distance,
        n_resamples=1000,
        alternative="greater",
        **{"rng" if new else "random_state": 1},
    )
    assert grid.wasserstein(0.95).p_value == pytest.approx(known.pvalue, abs=0.03)


def test_the_mean_of_many_people_has_the_interval_of_student():
    every = np.random.default_rng(13).beta(2, 3, 400)
    for scores in (every, every[:80]):
        known = stats.ttest_1samp(scores, 0.5).confidence_interval(0.9)
        low, high = mean_interval(scores, Weights(len(scores)), 0.9)
        if len(scores) > 200:
            assert (low, high) == pytest.approx((known.low, known.high))
        else:
            assert low < known.low < known.high < high


@pytest.mark.parametrize("count", [0, 1, 7, 29, 30])
def test_the_mean_of_decisions_has_the_interval_of_wilson(count):
    # Student's quantile is the normal one where there are many people.
    decisions = np.tile(np.repeat([0.0, 1.0], [30 - count, count]), 4000)
    known = wilson(count * 4000, len(decisions), 0.95)
    assert mean_interval(decisions, Weights(len(decisions)), 0.95) == pytest.approx(
        known, rel=1e-3, abs=1e-12
    )


def test_the_interval_of_a_mean_solves_its_equation():
    scores = np.random.default_rng(3).beta(1, 5, 25)
    _, high = mean_interval(scores, Weights(len(scores)), 0.95)
    distance = 1.0 - scores.mean()
    share = (high - scores.mean()) / distance
    variance = (1 - share) * (scores.var(ddof=1) + share * distance**2)
    t = stats.t.ppf(0.975, 24)
    assert share * distance == pytest.approx(t * np.sqrt(variance / 25), rel=1e-12)


def test_margins_of_means_are_combined_as_newcombe_combines_rates():
    first, second = np.repeat([0.0, 1.0], [9000, 3000]), np.repeat([0.0, 1.0], [3000, 1000])
    found = mean_difference(first, second, 0.95)
    assert found == pytest.approx(rate_difference((3000, 1000), (12000, 4000), 0.95), abs=2e-4)


def test_the_limit_of_several_gaps_of_rates_is_that_of_one():
    once = fold(rate_difference((12, 30), (40, 50), 0.95))[1]
    assert rate_gaps_limit(((12, 30),), ((40, 50),), 0.95) == pytest.approx(once, rel=1e-12)


# Groups of which one is small, and scores of which some are rare: a sample may show none of them.
RARE = {"alike": (0.01, 0.01), "more": (0.05, 0.01), "less": (0.01, 0.05)}


@pytest.mark.parametrize("case", RARE)
@pytest.mark.parametrize("sizes", [(30, 1000), (30, 30)])
def test_intervals_cover_where_scores_are_rare(case, sizes):
    generator = np.random.default_rng(15)
    shares, n_draws = RARE[case], 200
    gap = abs(shares[0] - shares[1])
    truth = {"mean_gap": 0.8 * gap, "wasserstein": 0.8 * gap, "total_variation": gap}
    truth["kolmogorov_smirnov"] = gap
    hits = dict.fromkeys(truth, 0)
    for _ in range(n_draws):
        scores = tuple(
            np.where(generator.random(size) < share, 0.9, 0.1)
            for size, share in zip(sizes, shares, strict=True)
        )
        grid = ScoreGrid(scores, n_resamples=100, generator=generator)
        for name, value in truth.items():
            spread = getattr(grid, name)(0.95)
            hits[name] += spread.low <= value + 1e-12 and value <= spread.high + 1e-12
    assert {name: h / n_draws for name, h in hits.items() if h / n_draws < 0.93} == {}


def test_constant_groups_have_an_interval_with_a_width():
    constant = np.full(30, 0.4), np.full(40, 0.4)
    grid = ScoreGrid(constant, n_resamples=100, generator=np.random.default_rng(0))
    for name in ("mean_gap", "wasserstein", "kolmogorov_smirnov", "total_variation"):
        spread = getattr(grid, name)(0.95)
        assert spread.low == 0.0
        assert spread.high > 0.05


def test_pairs_without_a_gap_have_an_interval_with_a_width():
    even, mass = np.zeros(30), np.full(30, 1 / 30)
    generator = np.random.default_rng(0)
    low, high = pair_mean(even, mass, np.arange(30), 0.95, n_resamples=50, generator=generator)
    assert low == 0.0
    assert high == pytest.approx(0.122, abs=5e-3)  # Wilson's for none of thirty, with Student's t


@pytest.mark.parametrize("name", ["wasserstein", "total_variation", "kolmogorov_smirnov"])
def test_levels_beyond_the_permutations_have_a_lower_limit_too(name):
    # Of many pairs of groups each is asked for more than 100 permutations can show.
    confidence = 1.0 - 0.05 / 45
    apart, alike = 0, 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        first, same = generator.beta(2, 4, 900), generator.beta(2, 4, 400)
        other = generator.beta(4, 2, 400)
        for second, limit in ((other, 0.2 if name == "wasserstein" else 0.3), (same, 0.0)):
            grid = ScoreGrid((first, second), n_resamples=100, generator=generator)
            low = getattr(grid, name)(confidence).low
            # The true distances are 1/3 in the mean and .625 at the threshold 1/2.
            apart += limit > 0.0 and limit < low < (0.334 if name == "wasserstein" else 0.625)
            alike += limit == 0.0 and low > 0.0
    assert apart == 40
    assert alike == 0


def test_equal_vectors_have_lower_limit_zero():
    noise = np.random.default_rng(14).normal(size=(200, 5))
    low, high = norm_interval(np.zeros(5), noise, lambda v: np.abs(v).sum(axis=-1), 0.95)
    assert low == 0.0
    assert high > 0.0
