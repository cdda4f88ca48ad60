"""The table of methods, which extends the one that searches for alternatives use."""

from paper.groups import TITLES
from paper.methods import METHODS, Problem, plain_model
from paper.specs import SERIES
from smallruns import small_problem

from fairmatch.learning.path import METHODS as SEARCHED


def test_every_method_stands_in_a_line_or_in_the_study_of_groups():
    tuned = {name for name, method in METHODS.items() if method.schedule == "tuned"}
    assert tuned == set(TITLES)
    assert {series.method for series in SERIES.values()} == set(METHODS) - tuned
    assert {method.reference for method in METHODS.values()} <= {None, "unfair", "trees-unfair"}


def test_scores_of_known_rows_are_computed_once():
    problem = small_problem()
    problem = Problem(problem.dataset, problem.train, problem.test, problem.train)
    model = plain_model(problem, {"rounds": 3}, 0)
    test = problem.test
    assert model(test, test.group) is model(test, test.group)
    moved = model(test, 1 - test.group)
    assert moved.shape == test.group.shape
    assert len(SEARCHED) >= 4
