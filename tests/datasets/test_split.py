import numpy as np
import pandas as pd
import pytest

from fairmatch.datasets import load_dataset, load_german, paper_split
from fairmatch.exceptions import InputError
from fairmatch.people.encoding import TableEncoder

ARRAYS = ["X", "y", "group", "sensitive_features"]


@pytest.fixture(scope="module")
def german():
    return load_german()


def test_parts_are_the_rows_that_the_positions_say(german):
    split = paper_split(german, seed=3)
    both = np.concatenate([split.train_index, split.test_index])
    assert sorted(both) == list(range(1000))
    for part in ("train", "test"):
        index = getattr(split, f"{part}_index")
        assert (getattr(split, f"y_{part}") == german.y.to_numpy()[index]).all()
        assert (getattr(split, f"group_{part}") == german.group[index]).all()
        names = german.sensitive_features.to_numpy()[index]
        assert (getattr(split, f"sensitive_features_{part}") == names).all()
        encoded = split.encoder.transform(german.X.iloc[index])
        assert (getattr(split, f"X_{part}") == encoded).all()


def test_the_encoder_knows_the_training_rows_only(german):
    split = paper_split(german, seed=0)
    alone = TableEncoder().fit(german.X.iloc[split.train_index])
    assert split.encoder.to_dict() == alone.to_dict()
    assert split.X_train.min() == 0
    assert split.X_train.max() == 1


def test_same_seed_same_bits(german):
    first, again, other = (paper_split(german, seed=seed) for seed in (5, 5, 6))
    for name in ARRAYS:
        for part in ("train", "test"):
            left, right = (getattr(split, f"{name}_{part}") for split in (first, again))
            assert left.tobytes() == right.tobytes()
    assert not np.array_equal(first.test_index, other.test_index)


def test_the_global_random_state_is_left_alone(german):
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    paper_split(german, seed=1)
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("german", (800, 200)), ("bank", (24_390, 6_098)), ("dutch", (48_336, 12_084))],
)
def test_sizes_are_the_papers(needs, name, sizes):
    needs(name)
    split = paper_split(load_dataset(name), seed=0)
    assert (len(split.y_train), len(split.y_test)) == sizes


def test_the_width_does_not_depend_on_the_seed(german):
    """A level without training rows keeps its (empty) column."""
    widths = {paper_split(german, seed=seed, test_size=0.99).X_test.shape[1] for seed in range(5)}
    assert widths == {57}


@pytest.mark.parametrize("test_size", [0, 1, -0.2, 1.5, 0.9999, float("nan")])
def test_a_part_without_rows_is_an_error(german, test_size):
    with pytest.raises(InputError, match="test_size"):
        paper_split(german, seed=0, test_size=test_size)


def test_rounding_does_not_add_a_row(german):
    hundred = type(german)(
        **{
            **{field: getattr(german, field) for field in german.__dataclass_fields__},
            "X": german.X.head(100),
            "y": german.y.head(100),
            "sensitive_features": pd.Series(german.sensitive_features.head(100)),
        }
    )
    assert len(paper_split(hundred, seed=0, test_size=0.29).y_test) == 29
