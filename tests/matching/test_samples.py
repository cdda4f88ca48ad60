"""Samples of large parts: who is drawn."""

import numpy as np
import pytest

from fairmatch.matching.matchers import sample_part
from fairmatch.people.groups import read_criterion, read_groups
from fairmatch.people.people import People


@pytest.mark.parametrize(
    ("sizes", "kept"), [((10, 1000), (10, 20)), ((30, 1000), (30, 30)), ((300, 400), (50, 50))]
)
def test_a_sample_keeps_small_groups_and_the_shares_of_the_classes(sizes, kept):
    groups = read_groups(np.repeat(["a", "b"], sizes))
    positive = np.random.default_rng(0).random(len(groups)) < 0.3
    (part,) = People(groups).comparisons(read_criterion("demographic_parity"))
    drawn = sample_part(part, 100, positive, np.random.default_rng(0))
    again = sample_part(part, 100, positive, np.random.default_rng(0))
    for rows, same, size, everybody in zip(
        (drawn.source_rows, drawn.target_rows),
        (again.source_rows, again.target_rows),
        kept,
        (part.source_rows, part.target_rows),
        strict=True,
    ):
        np.testing.assert_array_equal(rows, same)
        assert len(set(rows.tolist()) & set(everybody.tolist())) == len(rows) == size
        assert abs(positive[rows].sum() - size * positive[everybody].mean()) <= 1.0
    assert sample_part(part, sum(sizes), positive, np.random.default_rng(0)) is part
    assert sample_part(part, None, None, np.random.default_rng(0)) is part
