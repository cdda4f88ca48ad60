"""Shapes and base rates against those counted once from the publishers' files."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

from fairmatch.datasets import (
    DATASET_NAMES,
    load_acsincome,
    load_adult,
    load_bank,
    load_dataset,
    load_dutch,
    load_german,
    paper_split,
)
from fairmatch.exceptions import DatasetError, InputError
from fairmatch.people.encoding import TableEncoder

# rows, encoded features, rows with S=0 and S=1, P(Y=1 | S=0), P(Y=1 | S=1), favoured, batch size
KNOWN = {
    "adult": (45_222, 101, (14_695, 30_527), 0.1136, 0.3125, "male", 1024),
    "german": (1_000, 57, (310, 690), 0.648, 0.723, "male", 200),
    "bank": (30_488, 57, (864, 29_624), 0.2303, 0.1235, "under 25", 512),
    "dutch": (60_420, 59, (30_273, 30_147), 0.327, 0.626, "male", 1024),
    # 3 numbers; 5 marital states, 18 relationships, 8 classes of worker, 529 occupations, 223
    # places of birth, 9 races
    "acsincome": (332_900, 795, (159_325, 173_575), 0.2885, 0.4418, "male", 1024),
}


@pytest.fixture(params=DATASET_NAMES, scope="module")
def dataset(request, needs):
    needs(request.param)
    return load_dataset(request.param)


def test_shape_groups_and_base_rates(dataset):
    n_rows, n_features, sizes, rate_0, rate_1, favoured, batch_size = KNOWN[dataset.name]
    assert len(dataset.X) == n_rows
    assert len(TableEncoder(max_levels=None).fit(dataset.X).get_feature_names_out()) == n_features
    assert tuple(np.bincount(dataset.group)) == sizes
    rates = [dataset.y[dataset.group == code].mean() for code in (0, 1)]
    assert rates == pytest.approx([rate_0, rate_1], abs=6e-4)
    assert dataset.favoured_group == favoured == dataset.groups[int(np.argmax(rates))]
    assert dataset.batch_size == batch_size


def test_the_number_of_features_is_that_of_scikit_learns_encoder(dataset):
    levels = OneHotEncoder().fit(dataset.X[dataset.categorical_features]).categories_
    n_features = len(dataset.numeric_features) + sum(map(len, levels))
    assert n_features == KNOWN[dataset.name][1]


def test_the_table_is_tidy(dataset):
    assert not dataset.X.isna().any(axis=None)
    assert list(dataset.X.index) == list(range(len(dataset.X)))
    columns = [*dataset.numeric_features, *dataset.categorical_features]
    assert sorted(columns) == sorted(dataset.X.columns)
    assert dataset.y.dtype == np.int64
    assert set(dataset.y) == {0, 1}
    assert set(dataset.sensitive_features) == set(dataset.groups)
    for column in dataset.categorical_features:
        levels = dataset.X[column].cat.categories
        assert dataset.X[column].nunique() == len(levels), f"{column} has a level without rows"
    assert all([dataset.licence, dataset.citation, dataset.source, dataset.description])
    assert dataset.sensitive_features.name not in dataset.X


def test_codes_follow_the_names_of_the_groups(dataset):
    names = np.array(dataset.groups)[dataset.group]
    assert (names == dataset.sensitive_features.to_numpy()).all()


def test_a_dataset_cannot_be_reassigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        load_german().name = "other"


def test_german_codes_become_words():
    first = load_german().X.iloc[0]
    assert first["checking_account"] == "below 0 DM"  # A11
    assert first["credit_history"] == "critical account"  # A34
    assert first["savings"] == "unknown or none"  # A65
    assert first["age"] == 67


def test_on_bank_the_group_is_a_function_of_age(needs):
    needs("bank")
    bank = load_bank()
    assert ((bank.X["age"] >= 25).to_numpy() == bank.group).all()
    assert bank.X["month"].cat.categories[0] == "mar"


def test_dutch_words_fit_each_other(needs):
    """The codebook was matched by value; these are the checks that it was matched rightly."""
    needs("dutch")
    X = load_dutch().X
    position, married = X["household_position"], X["marital_status"] == "married"
    assert married[position.str.startswith("married")].all()
    assert married[~position.str.startswith("married")].mean() < 0.02
    assert ((position == "living alone") == (X["household_size"] == "1")).all()
    student = X["economic_status"] == "student with a job"
    assert set(X.loc[student, "age"]) == {"15 to 19", "20 to 24", "25 to 29", "30 to 34"}


def test_an_unknown_name_is_an_error():
    with pytest.raises(DatasetError, match=r"no dataset 'compas'\. Choose one of adult, german"):
        load_dataset("compas")


def test_a_loaded_table_is_the_callers_own():
    german = load_german()
    german.X.loc[0, "age"] = -1
    assert load_german().X.loc[0, "age"] == 67
    assert isinstance(german.X, pd.DataFrame)


@pytest.mark.parametrize("load", [load_adult, load_acsincome])
def test_what_is_sensitive_leaves_the_features(needs, load):
    needs(load.__name__.removeprefix("load_"))
    usual, race, both = load(), load(sensitive="race"), load(sensitive=["sex", "race"])
    assert "race" in usual.X
    assert "sex" in race.X
    assert not {"sex", "race"} & set(both.X)
    assert race.sensitive_features.name == "race"
    assert list(both.sensitive_features.columns) == ["sex", "race"]
    assert (both.sensitive_features["sex"] == usual.sensitive_features).all()
    assert (both.sensitive_features["race"] == race.sensitive_features).all()
    assert (usual.X["race"].astype(str) == race.sensitive_features).all()
    assert usual.X.drop(columns="race").equals(both.X)
    assert usual.y.equals(both.y)


def test_combinations_are_counted_as_pandas_counts_them():
    adult = load_adult(sensitive=["sex", "race"])
    counted = adult.y.groupby([adult.sensitive_features[name] for name in ("sex", "race")])
    expected = {", ".join(key): size for key, size in counted.size().items()}
    assert dict(zip(adult.groups, np.bincount(adult.group), strict=True)) == expected
    assert adult.favoured_group == ", ".join(counted.mean().idxmax())
    assert len(adult.groups) == 10
    split = paper_split(adult, seed=0)
    assert set(split.sensitive_features_train) == set(adult.groups)


@pytest.mark.parametrize("wrong", ["age", [], ["sex", "sex"], ["sex", "age"]])
def test_what_may_be_sensitive_is_told(wrong):
    with pytest.raises(InputError, match=r"one of 'sex', 'race', or a list .* got "):
        load_adult(sensitive=wrong)


def test_a_choice_can_be_made_by_name_where_there_is_one():
    assert load_dataset("adult", sensitive="race").groups[-1] == "White"
    with pytest.raises(InputError, match="of 'german' cannot be chosen"):
        load_dataset("german", sensitive="sex")


def test_codes_of_the_survey_become_words(needs):
    """Shares by race are the published ones; what is known of ages and wages fits the words."""
    needs("acsincome")
    table = load_acsincome(sensitive="race")
    shares = table.sensitive_features.value_counts(normalize=True)
    known = {"White": 0.780, "Black": 0.089, "Asian": 0.058, "another race": 0.038}
    assert {name: shares[name] for name in known} == pytest.approx(known, abs=1e-3)
    assert len(shares) == 9
    ages = table.X["age"].groupby(table.X["marital_status"], observed=True).mean()
    assert (ages.idxmin(), ages.idxmax()) == ("never married", "widowed")
    rates = table.y.groupby(table.X["class_of_worker"], observed=True).mean()
    assert rates.idxmin() == "family business without pay"
    assert rates["federal government"] > rates["local government"]
    assert table.X["occupation"].cat.categories[0] == "10"
