import numpy as np
import pytest
from paper.specs import Problem
from smallruns import small_table

from fairmatch.datasets import load_german
from fairmatch.exceptions import InputError


@pytest.fixture(scope="module")
def german():
    return load_german()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_the_share_of_the_minority_is_the_one_asked_for(german, share, seed):
    whole, thin = Problem.draw(german, seed).split, Problem.draw(german, seed, share).split
    n_others = int((whole.group_train == 1).sum())
    wanted = round(n_others * share / (1 - share))
    assert np.bincount(thin.group_train).tolist() == [wanted, n_others]
    # No other whole number of rows comes nearer.
    shares = [abs(n / (n + n_others) - share) for n in (wanted - 1, wanted, wanted + 1)]
    assert np.argmin(shares) == 1


def test_only_training_rows_are_dropped(german):
    whole, thin = Problem.draw(german, 0).split, Problem.draw(german, 0, 0.05).split
    for name in ("X_test", "y_test", "group_test", "sensitive_features_test", "test_index"):
        assert np.array_equal(getattr(whole, name), getattr(thin, name))
    kept = np.isin(whole.train_index, thin.train_index)
    assert kept[whole.group_train == 1].all()
    for name in ("X_train", "y_train", "group_train", "sensitive_features_train", "train_index"):
        assert np.array_equal(getattr(whole, name)[kept], getattr(thin, name))
    again, other = Problem.draw(german, 0, 0.05).split, Problem.draw(german, 1, 0.05).split
    assert np.array_equal(again.train_index, thin.train_index)
    assert not np.array_equal(other.train_index, thin.train_index)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 0.9, 1e-9])
def test_shares_that_cannot_be(german, share):
    with pytest.raises(InputError, match="share"):
        Problem.draw(german, 0, share)


def test_raw_rows_are_those_of_the_split(german):
    problem = Problem.draw(german, 0, 0.1)
    assert np.array_equal(problem.split.encoder.transform(problem.raw_test), problem.split.X_test)
    assert np.array_equal(problem.split.encoder.transform(problem.raw_train), problem.split.X_train)
    assert problem.favoured_code == 1


def test_german_is_halved_by_age(german):
    problem = Problem.draw(german, 0)
    halves = problem.named_subsets()
    age = problem.raw_test["age"].to_numpy()
    assert list(halves) == ["high age", "low age"]
    assert np.array_equal(halves["high age"], ~halves["low age"])
    assert age[halves["high age"]].min() >= np.median(age) > age[halves["low age"]].max()


def test_dutch_is_halved_by_marriage():
    status = np.array(["married", "single", "widowed", "divorced"])[np.arange(200) // 50]
    problem = Problem.draw(small_table(name="dutch", marital_status=status), 0)
    halves = problem.named_subsets()
    inside = problem.raw_test["marital_status"] == "married"
    assert np.array_equal(halves["married"], inside)
    assert np.array_equal(halves["not married"], ~inside)


def test_other_tables_are_not_halved():
    assert Problem.draw(small_table(), 0).named_subsets() == {}


def test_rows_that_are_all_alike_cannot_be_halved():
    with pytest.raises(InputError, match="cannot be halved"):
        Problem.draw(small_table(name="dutch", marital_status="married"), 0).named_subsets()
