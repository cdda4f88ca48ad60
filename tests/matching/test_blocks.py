"""Couplings put together from blocks: exact marginals, a cost near the least, true blocks."""

import errno
import os
import signal
from functools import partial

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from fairmatch import OptimalTransportMatcher
from fairmatch.exceptions import CouplingError, FairmatchWarning, InputError, SolverError
from fairmatch.matching import blocks
from fairmatch.matching import blocks as kept
from fairmatch.matching.blocks import lower_bound, match_blocks, near_cells, random_staircase
from fairmatch.matching.solver import Transport
from fairmatch.people.encoding import Points


def group(n, seed, shift=0.0):
    generator = np.random.default_rng(seed)
    return Points(generator.normal(shift, 0.5, size=(n, 3)), generator.integers(-1, 4, (n, 2)))


def units(n0, n1):
    common = np.lcm(n0, n1)
    return np.full(n0, common / n0), np.full(n1, common / n1)


PEOPLE = group(600, 0), group(700, 1, 0.3)
UNITS = units(600, 700)
EXACT = Transport(*PEOPLE).solve().cost


SIZE = 128


def plan(**more):
    return match_blocks(PEOPLE, UNITS, **{"block_size": SIZE, **more})


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("source", "target", "flow")
    )


def check_marginals(found, masses):
    for rows, wanted in zip((found.source, found.target), masses, strict=True):
        np.testing.assert_array_equal(np.bincount(rows, found.flow, len(wanted)), wanted)
    np.testing.assert_array_equal(found.flow, np.rint(found.flow))


def test_the_cost_is_near_the_least_one_and_marginals_are_exact():
    found = plan()
    check_marginals(found, UNITS)
    assert found.cost * (1 + 1e-12) >= EXACT
    assert found.cost <= 1.03 * EXACT
    costs = PEOPLE[0].pair_costs(found.source, found.target, PEOPLE[1])
    assert found.cost == pytest.approx(costs @ found.flow / found.flow.sum())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(2, 20), st.integers(0, 1000))
def test_any_sizes_and_masses(n0, n1, size, seed):
    generator = np.random.default_rng(seed)
    masses = [generator.integers(0, 5, n).astype(float) for n in (n0, n1)]
    for mass in masses:
        mass[0] += 1.0
    masses = masses[0] * masses[1].sum(), masses[1] * masses[0].sum()
    people = group(n0, seed), group(n1, seed + 1)
    check_marginals(match_blocks(people, masses, block_size=size), masses)


def test_one_block_is_the_exact_plan():
    found = plan(block_size=10_000)
    assert found.rounds == 1
    assert found.cost == pytest.approx(EXACT, rel=1e-5)


def test_cells_hold_every_pair_once_and_near_ones_together():
    pairs = random_staircase(UNITS, np.random.default_rng(0))
    cells = near_cells(PEOPLE, pairs[0], pairs[1], 100, np.random.default_rng(1))
    assert sorted(np.concatenate(cells).tolist()) == list(range(len(pairs[0])))
    assert max(map(len, cells)) <= 100 < 2 * min(map(len, cells)) + 1
    middles = PEOPLE[0].dense()[pairs[0]] + PEOPLE[1].dense()[pairs[1]]
    inside = np.mean([middles[cell].var(axis=0).sum() for cell in cells])
    assert inside < 0.8 * middles.var(axis=0).sum()


def test_bounds_are_below_the_least_cost():
    by_columns = lower_bound(PEOPLE, UNITS, proof_pairs=0, most_atoms=20)
    assert 0.5 * EXACT < by_columns <= EXACT
    part = lower_bound(PEOPLE, UNITS, sample=200, most_atoms=20)
    assert max(0.8 * EXACT, by_columns) < part <= EXACT
    whole = lower_bound(PEOPLE, UNITS, sample=1000, most_atoms=20)
    assert 0.99 * EXACT < whole <= EXACT


def least_cost(people, masses):
    """The least cost of a plan by HiGHS."""
    n0, n1 = map(len, people)
    at = np.indices((n0, n1)).reshape(2, -1)
    constraints = sparse.vstack(
        [sparse.kron(sparse.eye(n0), np.ones(n1)), sparse.kron(np.ones(n0), sparse.eye(n1))]
    )
    shares = np.concatenate([mass / mass.sum() for mass in masses])
    costs = people[0].pair_costs(*at, people[1])
    return linprog(costs, A_eq=constraints, b_eq=shares, method="highs").fun


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 8), st.integers(0, 10_000))
def test_bounds_hold_for_any_weights_and_sets_of_columns(n0, n1, most_atoms, seed):
    generator = np.random.default_rng(seed)
    people = tuple(
        Points(
            np.column_stack([generator.integers(0, 3, n), generator.normal(size=n)]),
            generator.integers(-1, 3, (n, 3)),
        )
        for n in (n0, n1)
    )
    masses = [generator.integers(0, 5, n).astype(float) for n in (n0, n1)]
    for mass in masses:
        mass[0] += 1.0
    masses = masses[0] * masses[1].sum(), masses[1] * masses[0].sum()
    least = least_cost(people, masses)
    for more in ({"proof_pairs": 0}, {"sample": 3}, {}):
        found = lower_bound(people, masses, most_atoms=most_atoms, **more)
        assert found <= least * (1 + 1e-9) + 1e-12
    assert found == pytest.approx(least, rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("size", [2, 7, 40])
def test_minima_over_near_cells_are_those_over_everybody(size, monkeypatch):
    monkeypatch.setattr(blocks, "_CELL", size)
    monkeypatch.setattr(blocks, "_CELLS_AT_ONCE", 2)
    generator = np.random.default_rng(size)
    people = tuple(
        Points(0.2 * generator.normal(size=(n, 2)), generator.integers(-1, 3, (n, 2)))
        for n in (150, 130)
    )
    u = generator.normal(size=150)
    source, target = map(blocks.Cells.of, people)
    assert np.diff(source.start).max() <= size or size < 40
    assert sorted(source.rows) == list(range(150))
    found = blocks._all_minima(source, target, u, None)
    at = np.indices((150, 130)).reshape(2, -1)
    costs = people[0].pair_costs(*at, people[1]).reshape(150, 130)
    np.testing.assert_allclose(found, (costs - u[:, None]).min(axis=0), rtol=0, atol=1e-12)
    assert (found <= (costs - u[:, None]).min(axis=0)).all()
    _, looked_at = blocks._minima(source, target, np.arange(len(target.low)), u[source.rows])
    assert size == 40 or looked_at < 150 * 130


def test_categories_of_many_cells_and_numbers_within_them_are_bounded_tightly():
    """Sets of columns alone miss how few people share all categories."""
    generator = np.random.default_rng(0)
    people = tuple(
        Points(
            0.3 * generator.normal(size=(1500, 3)) + 0.03 * shift,
            generator.integers(0, 8, (1500, 2)),
        )
        for shift in (0, 1)
    )
    masses = np.ones(1500), np.ones(1500)
    exact = Transport(*people).solve(tolerance=1e-4).cost
    found = lower_bound(people, masses, sample=300, most_atoms=100)
    by_columns = lower_bound(people, masses, proof_pairs=0, most_atoms=100)
    assert 0.8 * exact < found <= exact
    assert by_columns < 0.9 * found


def test_one_set_of_all_columns_is_the_exact_bound():
    generator = np.random.default_rng(0)
    codes = [generator.integers(0, 3, (400, 2)) for _ in range(2)]
    people = tuple(
        Points(np.zeros((400, 0)), np.minimum(c, [2, 1 + k])) for k, c in enumerate(codes)
    )
    masses = np.ones(400), np.ones(400)
    assert lower_bound(people, masses, proof_pairs=0) == pytest.approx(
        Transport(*people).solve().cost, rel=2e-3
    )


def matched(**more):
    X = Points(np.vstack([p.numbers for p in PEOPLE]), np.vstack([p.codes for p in PEOPLE]))
    given = {name: more.pop(name) for name in ("keep", "n_jobs", "progress") if name in more}
    groups = np.repeat([0, 1], [600, 700])
    return OptimalTransportMatcher(**{"block_size": 128, **more}).match(X, groups, **given)


def test_a_matcher_says_which_way_it_took():
    coupling = matched()
    certificate = coupling.certificate
    assert certificate.solver.startswith("blocks of up to 128 pairs, ")
    assert certificate.bound <= EXACT <= certificate.cost * (1 + 1e-12)
    source, target = coupling.marginals()
    np.testing.assert_allclose(source[source > 0], 1 / 600, rtol=1e-12)
    np.testing.assert_allclose(target[target > 0], 1 / 700, rtol=1e-12)
    whole = matched(block_size="auto")
    assert whole.certificate.solver == "column generation"
    assert matched(block_size=None).certificate.cost == whole.certificate.cost


def test_bounds_of_parts_add_up():
    generator = np.random.default_rng(0)
    X, groups = generator.normal(size=(300, 2)), np.arange(300) % 3
    coupling = OptimalTransportMatcher(block_size=40).match(X, groups)
    bounds = [part.weight * part.certificate.bound for part in coupling.parts]
    assert len(bounds) == 2
    assert coupling.certificate.bound == pytest.approx(sum(bounds))
    assert 0.9 * coupling.certificate.cost < coupling.certificate.bound


@pytest.mark.parametrize("block_size", [1, 2.5, "large"])
def test_sizes_that_are_none(block_size):
    with pytest.raises(InputError, match="one of the two"):
        OptimalTransportMatcher(batch_size=64, block_size=64)
    with pytest.raises(InputError, match="block_size"):
        OptimalTransportMatcher(block_size=block_size)


def test_ten_people_against_many():
    few, many = group(10, 0), group(5_000, 1)
    found = match_blocks((few, many), units(10, 5_000), block_size=512)
    check_marginals(found, units(10, 5_000))
    assert found.cost <= 1.03 * Transport(few, many).solve(tolerance=1e-4).cost


class Stopped(Exception):
    pass


def stopping(after):
    """Interrupt when so many calls were made, as a user does."""
    calls = iter(range(10**9))

    def progress(*_):
        if next(calls) == after:
            raise Stopped

    return progress


def test_blocks_grow_when_a_round_gains_little(monkeypatch):
    monkeypatch.setattr(blocks, "FIRST_SIZE", 16)
    counts = {}
    grown = plan(progress=lambda number, done, n_blocks, cost: counts.update({number: n_blocks}))
    counted = list(counts.values())
    assert counted[0] > 4 * counted[-1]
    check_marginals(grown, UNITS)
    # Small blocks only prepare: what counts is reached by the largest ones.
    assert grown.cost <= 1.01 * plan().cost


@pytest.mark.parametrize("first_size", [16, SIZE])
@pytest.mark.parametrize("after", [0, 2, 9])
def test_an_interrupt_loses_nothing_that_is_kept(tmp_path, after, first_size, monkeypatch):
    monkeypatch.setattr(blocks, "FIRST_SIZE", first_size)
    monkeypatch.setattr(blocks, "_PAIRS_PER_TASK", 2 * SIZE)
    with pytest.raises(Stopped):
        plan(keep=tmp_path, progress=stopping(after))
    solved = []
    original = blocks._solve_task
    monkeypatch.setattr(
        blocks, "_solve_task", lambda place, work: (solved.append(place), original(place, work))[1]
    )
    assert same(plan(keep=tmp_path), plan())
    n_again = len(solved)
    solved.clear()
    assert same(plan(keep=tmp_path), plan(keep=tmp_path))
    assert not solved  # the whole plan is there
    plan()
    assert n_again + after + 1 == 2 * len(solved)  # every block once, and once for the comparison


def test_blocks_of_another_matching_are_not_taken(tmp_path):
    plan(keep=tmp_path / "a")
    with pytest.raises(CouplingError, match="another matching"):
        plan(keep=tmp_path / "a", random_state=1)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "matching.json").write_text('{"format": 2, "mat')
    with pytest.raises(CouplingError, match=r"matching\.json is damaged"):
        plan(keep=tmp_path / "c")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("mine")
    with pytest.raises(CouplingError, match="no blocks"):
        plan(keep=tmp_path / "b")
    (file,) = (tmp_path / "a").glob("round-*.npz")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CouplingError, match="damaged"):
        plan(keep=tmp_path / "a")


def test_a_full_disk_is_said_and_the_matching_goes_on(tmp_path, monkeypatch):
    def full(file, pairs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

    monkeypatch.setattr(kept, "_write", full)
    with pytest.warns(FairmatchWarning, match="can no longer be kept .* No space left"):
        found = plan(keep=tmp_path)
    assert same(found, plan())


def dying(flag, place, work):
    """Solve, but die the first time that this block is asked for."""
    if place == 1 and not flag.exists():
        flag.write_text("died")
        os.kill(os.getpid(), signal.SIGKILL)
    return SOLVE(place, work)


SOLVE = blocks._solve_task


def test_a_worker_that_is_killed_costs_its_blocks_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_ROUNDS", 2)
    monkeypatch.setattr(blocks, "_PAIRS_PER_TASK", 2 * SIZE)
    expected = plan()
    monkeypatch.setattr(blocks, "_solve_task", partial(dying, tmp_path / "flag"))
    with joblib.parallel_config("loky", n_jobs=2):
        found = plan(n_jobs=2)
    assert (tmp_path / "flag").exists()
    assert same(found, expected)


def test_workers_that_always_die_are_an_error(monkeypatch):
    from joblib.externals.loky import BrokenProcessPool

    def broken(place, work):
        raise BrokenProcessPool("died")

    monkeypatch.setattr(blocks, "_solve_task", broken)
    with pytest.raises(SolverError, match="0 are solved"):
        plan()


def test_a_cluster_gives_the_same_plan_though_a_worker_is_killed(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(blocks, "MAX_ROUNDS", 2)
    monkeypatch.setattr(blocks, "_PAIRS_PER_TASK", 2 * SIZE)
    expected = plan()
    monkeypatch.setattr(blocks, "_solve_task", partial(dying, tmp_path / "flag"))
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=50,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        found = plan()
    assert (tmp_path / "flag").exists()
    assert same(found, expected)
