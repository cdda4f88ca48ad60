import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.figures import appendix_b_chart, counterfactual_chart
from paper.illustrations import appendix_b, counterfactuals

from fairmatch.exceptions import InputError
from fairmatch.report.charts import save_chart

close = pytest.approx


@pytest.mark.parametrize("n_points", [2, 10, 200])
def test_appendix_b_has_the_numbers_of_the_closed_form(n_points):
    facts = appendix_b(n_points)
    swaps, stays = facts.models
    assert (swaps.group_gap, swaps.subset_gap) == (0.0, 1.0)
    assert (stays.group_gap, stays.subset_gap) == (0.0, 0.0)
    assert swaps.transport_cost == close(0.25, abs=1e-9)
    assert stays.transport_cost == close(0.0, abs=1e-9)
    for model in facts.models:
        assert model.coupling.gap(model.scores) == 0.0
    moves = facts.x[swaps.coupling.target_index] - facts.x[swaps.coupling.source_index]
    x = facts.x[swaps.coupling.source_index]
    assert moves == close(np.where(x < 0.5, 0.5, -0.5)), "T(x) of the paper"


@pytest.mark.parametrize("n_points", [0, 3, -2])
def test_an_odd_grid_has_a_middle(n_points):
    with pytest.raises(InputError, match="even number"):
        appendix_b(n_points)


NUMBERS = st.floats(-3, 3)
POSITIVE = st.floats(0.1, 3)


@given(NUMBERS, NUMBERS, st.tuples(POSITIVE, POSITIVE), st.tuples(POSITIVE, POSITIVE))
def test_the_optimal_map_is_the_counterfactual(down, shift, variances, scales):
    # Whatever D is, proportional to the identity or not: the covariances are multiples.
    facts = counterfactuals(
        4,
        effects=((0.0, 0.0), (down, 0.0)),
        intercepts=((0.0, 1.0), (shift, -1.0)),
        noise=(variances, variances),
        scales=scales,
    )
    assert facts.gaussian.matrix == close(scales[1] / scales[0] * np.eye(2), abs=1e-6)
    assert facts.map_error < 1e-4
    # The paper's formula: B μ₁ + σ₁/σ₀ (x − B μ₀).
    b = np.array([[1.0, 0.0], [down, 1.0]])
    start, goal = b @ [0.0, 1.0], b @ [shift, -1.0]
    formula = goal + scales[1] / scales[0] * (facts.people - start)
    assert facts.counterfactual == close(formula, abs=1e-9)


def test_features_that_act_on_each_other():
    assert counterfactuals(10, effects=((0.0, -0.5), (0.8, 0.3))).map_error < 1e-9


def test_the_proposition_needs_the_same_noise_in_both_groups():
    unlike = ((1.0, 0.25), (0.25, 1.0))
    assert counterfactuals(20, noise=unlike).map_error > 0.1
    # Without effects both maps are diagonal, and agree all the same.
    assert counterfactuals(20, noise=unlike, effects=np.zeros((2, 2))).map_error < 1e-9
    assert counterfactuals(20, noise=((1.0, 0.5), (2.0, 1.0))).map_error < 1e-9, "a multiple"


def test_matching_the_samples_comes_near_with_more_people():
    few, many = counterfactuals(20), counterfactuals(600)
    assert many.coupling_error < few.coupling_error
    assert many.coupling_error < 0.6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"effects": np.eye(2)}, "inverse"),
        ({"noise": ((0.0, 1.0), (1.0, 1.0))}, "positive"),
        ({"intercepts": (0.0, 1.0)}, "two by two"),
    ],
)
def test_models_that_cannot_be(wrong, message):
    with pytest.raises(InputError, match=message):
        counterfactuals(5, **wrong)


def test_charts_are_drawn(tmp_path):
    pytest.importorskip("altair")
    first = save_chart(appendix_b_chart(appendix_b()), tmp_path / "b.svg").read_text()
    assert "transport cost 0.25" in first
    assert "transport cost 0.00" in first
    second = save_chart(counterfactual_chart(counterfactuals(30)), tmp_path / "c.svg").read_text()
    assert "counterfactual" in second
