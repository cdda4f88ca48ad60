"""Numbers and codes are as far apart as one-hot columns."""

import numpy as np
import pandas as pd
import pytest
from distances import distances
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from fairmatch.datasets import load_german
from fairmatch.exceptions import InputError
from fairmatch.people.encoding import Points, TableEncoder

ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-800, 800).map(lambda i: i / 8)),
        st.one_of(st.none(), st.sampled_from(["a", "b", "c", "d"])),
        st.booleans(),
        st.one_of(st.none(), st.integers(0, 3)),
    ),
    min_size=2,
    max_size=12,
)


def table(rows):
    number, text, flag, grade = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "number": np.array(number, dtype=float),
            "text": pd.Series(text, dtype=object),
            "flag": np.array(flag),
            "grade": pd.Categorical(grade, categories=[0, 1, 2, 3]),
        }
    )


@given(fitted=ROWS, asked=ROWS)
def test_distances_are_those_of_the_one_hot_columns(fitted, asked):
    # What fit did not see, a level or a missing value, is among what is asked.
    known = (0.0, "a", True, 0)
    left, right = table([known, *fitted]), table([known, *asked])
    encoder = TableEncoder(missing="encode").fit(left)
    found = distances(encoder.to_points(left), encoder.to_points(right))
    np.testing.assert_array_equal(encoder.to_points(right).dense(), encoder.transform(right))
    dense = cdist(encoder.transform(left), encoder.transform(right), "sqeuclidean")
    np.testing.assert_allclose(found, dense, rtol=1e-12, atol=1e-12)


def test_a_real_table():
    X = load_german().X
    encoder = TableEncoder().fit(X[:700])
    points = encoder.to_points(X)
    dense = encoder.transform(X)
    assert points.numbers.dtype == np.float64
    assert points.codes.dtype == np.int32
    assert points.numbers.shape[1] + points.codes.shape[1] == X.shape[1]
    assert points.numbers.nbytes + points.codes.nbytes < dense.nbytes / 3
    found = distances(points.take(slice(0, 50)), points.take(np.arange(900, 1000)))
    np.testing.assert_allclose(found, cdist(dense[:50], dense[900:], "sqeuclidean"), atol=1e-12)


def test_numbers_alone_and_categories_alone():
    numbers = TableEncoder().fit(np.eye(3)).to_points(np.eye(3))
    assert numbers.codes.shape == (3, 0)
    jobs = pd.DataFrame({"job": ["cook", "nurse"]})
    codes = TableEncoder().fit(jobs).to_points(jobs)
    assert codes.numbers.shape == (2, 0)
    assert distances(codes, codes).tolist() == [[0, 2], [2, 0]]


def test_rows_are_taken_in_order():
    points = Points(np.arange(4.0)[:, None], np.arange(4)[:, None])
    assert points.take([2, 0]).numbers.tolist() == [[2], [0]]
    assert points.take([True, False, False, True]).codes.tolist() == [[0], [3]]
    assert len(points.take([])) == 0


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [(np.zeros(3), np.zeros((3, 1))), (np.zeros((3, 1)), np.zeros((2, 1))), ([[0.0]], [[-2]])],
)
def test_bad_parts(numbers, codes):
    with pytest.raises(InputError, match=r"Points need numbers|Codes must be -1"):
        Points(numbers, codes)


def test_one_hot_columns_of_points_made_by_hand():
    points = Points(np.array([[0.5], [1.0], [0.0]]), np.array([[1, 0], [0, -1], [1, 2]]))
    dense = points.with_number(np.array([7.0, 8.0, 9.0])).dense()
    assert dense.shape == (3, points.n_columns + 1) == (3, 7)
    np.testing.assert_array_equal(dense[:, :2], [[0.5, 7.0], [1.0, 8.0], [0.0, 9.0]])
    pairs = np.array([0, 1, 2]), np.array([1, 2, 0])
    found = points.pair_costs(*pairs)
    np.testing.assert_allclose(found, distances(points, points)[pairs])
    columns = points.dense()
    np.testing.assert_allclose(found, ((columns[pairs[0]] - columns[pairs[1]]) ** 2).sum(axis=1))


def test_a_column_that_was_dropped_has_no_place_among_the_columns():
    frame = pd.DataFrame({"id": list("abcdef"), "age": range(6), "job": list("xyxyxy")})
    encoder = TableEncoder(max_levels=3, rare="drop").fit(frame)
    np.testing.assert_array_equal(encoder.to_points(frame).dense(), encoder.transform(frame))
