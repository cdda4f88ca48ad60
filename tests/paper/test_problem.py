import numpy as np
import pytest
from paper.methods import Problem
from smallruns import small_table

from fairmatch.datasets import load_german, paper_split
from fairmatch.exceptions import InputError


@pytest.fixture(scope="module")
def german():
    return load_german()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_the_share_of_the_minority_is_the_one_asked_for(german, share, seed):
    whole, thin = Problem.draw(german, seed).train, Problem.draw(german, seed, share).train
    n_others = int((whole.group == 1).sum())
    wanted = round(n_others * share / (1 - share))
    assert np.bincount(thin.group).tolist() == [wanted, n_others]
    # No other whole number of rows comes nearer.
    shares = [abs(n / (n + n_others) - share) for n in (wanted - 1, wanted, wanted + 1)]
    assert np.argmin(shares) == 1


def test_only_training_rows_are_dropped(german):
    whole, thin = Problem.draw(german, 0), Problem.draw(german, 0, 0.05)
    assert whole.test.X.equals(thin.test.X)
    kept = whole.train.X.index.isin(thin.train.X.index)
    assert kept[whole.train.group == 1].all()
    for name in ("encoded", "y", "group"):
        assert np.array_equal(getattr(whole.test, name), getattr(thin.test, name))
        assert np.array_equal(getattr(whole.train, name)[kept], getattr(thin.train, name))
    again, other = Problem.draw(german, 0, 0.05), Problem.draw(german, 1, 0.05)
    assert again.train.X.equals(thin.train.X)
    assert not other.train.X.index.equals(thin.train.X.index)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 0.9, 1e-9])
def test_shares_that_cannot_be(german, share):
    with pytest.raises(InputError, match="share"):
        Problem.draw(german, 0, share)


def test_raw_rows_are_those_of_the_split(german):
    problem, split = Problem.draw(german, 0, 0.1), paper_split(german, 0)
    for rows in (problem.train, problem.test):
        assert np.array_equal(split.encoder.transform(rows.X), rows.encoded)
    assert problem.favoured_code == 1


def test_german_is_halved_by_age(german):
    problem = Problem.draw(german, 0)
    halves = problem.named_subsets()
    age = problem.test.X["age"].to_numpy()
    assert list(halves) == ["high age", "low age"]
    assert np.array_equal(halves["high age"], ~halves["low age"])
    assert age[halves["high age"]].min() >= np.median(age) > age[halves["low age"]].max()


def test_dutch_is_halved_by_marriage():
    status = np.array(["married", "single", "widowed", "divorced"])[np.arange(200) // 50]
    problem = Problem.draw(small_table(name="dutch", marital_status=status), 0)
    halves = problem.named_subsets()
    inside = problem.test.X["marital_status"] == "married"
    assert np.array_equal(halves["married"], inside)
    assert np.array_equal(halves["not married"], ~inside)


def test_other_tables_are_not_halved():
    assert Problem.draw(small_table(), 0).named_subsets() == {}


def test_rows_that_are_all_alike_cannot_be_halved():
    with pytest.raises(InputError, match="cannot be halved"):
        Problem.draw(small_table(name="dutch", marital_status="married"), 0).named_subsets()
