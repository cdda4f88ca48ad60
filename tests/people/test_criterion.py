"""Which rows a criterion compares."""

import numpy as np
import pytest

from fairmatch.exceptions import InputError, LabelError
from fairmatch.measures import MEASURES
from fairmatch.people.groups import CRITERIA, read_criterion, read_groups
from fairmatch.people.people import Labels, People

POSITIVE = np.array([True, False, True])
GROUPS = read_groups(["a", "b", "a"])
PEOPLE = People(GROUPS, labels=Labels(POSITIVE.astype(float), (0, 1)))


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_is_known_by_its_name_and_has_a_measure(name):
    criterion = read_criterion(name)
    assert read_criterion(criterion) is criterion
    assert criterion.gap_measure in MEASURES
    assert criterion.needs_labels == MEASURES[criterion.gap_measure].needs_labels


def test_strata_are_the_compared_classes():
    (everybody,) = People(GROUPS).label_strata(read_criterion("demographic_parity"))
    assert everybody[0] is None
    assert everybody[1].all()
    (positive,) = PEOPLE.label_strata(read_criterion("equal_opportunity"))
    assert positive[0] is True
    np.testing.assert_array_equal(positive[1], POSITIVE)
    labels = [label for label, _ in PEOPLE.label_strata(read_criterion("equalized_odds"))]
    assert labels == [True, False]


def test_labels_that_are_needed_and_criteria_that_are_not_known():
    with pytest.raises(LabelError, match="'equal_opportunity' compares people of the same class"):
        People(GROUPS).label_strata(read_criterion("equal_opportunity"))
    with pytest.raises(InputError, match=r"'demographic_parity', .* got 'parity'"):
        read_criterion("parity")
    with pytest.raises(InputError, match="got None"):
        read_criterion(None)
