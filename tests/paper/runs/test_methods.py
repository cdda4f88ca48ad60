"""Methods are described apart from how they train."""

from paper.methods import FITS, METHODS, Curve, Method, fit_curve
from paper.specs import SERIES
from smallruns import small_problem


def test_every_method_can_be_trained():
    assert FITS.keys() == METHODS.keys()


def test_every_method_stands_in_a_line_and_knows_its_reference():
    assert {series.method for series in SERIES.values()} == set(METHODS)
    assert {method.reference for method in METHODS.values()} <= {None, "unfair", "trees-unfair"}


def test_a_method_that_brings_its_own_training_is_trained_so():
    own = Method("unfair", (0.0,), lambda problem, settings, seed: Curve([], [settings, seed]))
    assert fit_curve(own, small_problem(), {"a": 1}, 7).training_scores == [{"a": 1}, 7]
