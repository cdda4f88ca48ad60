"""Audits of predictions in units of the target."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairmatch import OptimalTransportMatcher, audit, compare_models
from fairmatch.auditing.audit import predict_people
from fairmatch.auditing.facts import Audit
from fairmatch.auditing.impact import write_tables
from fairmatch.auditing.streaming import audit_dataset
from fairmatch.exceptions import InputError
from fairmatch.measures import gap_table
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.roles import Roles

QUICK = {"n_resamples": 100, "n_subsets": 20, "n_sample": 200}


@pytest.fixture(scope="module")
def hours():
    """Predicted hours, the hours worked, groups and features."""
    random = np.random.default_rng(0)
    group = np.repeat(["f", "m"], 100)
    X = pd.DataFrame(random.normal(size=(200, 2)), columns=["age", "pay"])
    predicted = 35.0 + 4.0 * (group == "m") + X["age"].to_numpy() + random.normal(size=200)
    return predicted, predicted + random.normal(0, 3, 200), group, X


@pytest.fixture(scope="module")
def found(hours):
    predicted, worked, group, X = hours
    return audit(predicted, sensitive_features=group, X=X, y_true=worked, kind="number", **QUICK)


def test_gaps_are_in_units_and_relative_to_the_target(hours, found):
    predicted, worked, group, X = hours
    coupling = OptimalTransportMatcher().match(TableEncoder().fit_transform(X), group)
    given = {"sensitive_features": group, "coupling": coupling, "kind": "number"}
    expected = gap_table(worked, predicted, **given)
    values = {gap.name: gap.value for gap in found.gaps}
    for name, gap in expected.items():
        if "matched" not in name:
            assert values[name] == pytest.approx(gap)
    matched = found.gap("matched_parity_gap")  # an excess, in the same unit
    assert found.gap("relative_matched_parity_gap").value == pytest.approx(
        matched.value / worked.std()
    )
    assert matched.value < expected["matched_parity_gap"]
    women, men = predicted[group == "f"], predicted[group == "m"]
    assert found.gap("wasserstein_parity_gap").value == pytest.approx(
        stats.wasserstein_distance(women, men)
    )
    assert found.gap("ks_parity_gap").value == pytest.approx(stats.ks_2samp(women, men).statistic)
    assert (found.spread.of, found.spread.value) == ("target", pytest.approx(worked.std()))
    for gap in found.gaps:
        assert gap.low <= gap.value <= gap.high
    relative, mean = found.gap("relative_mean_parity_gap"), found.gap("mean_parity_gap")
    assert relative.high == pytest.approx(mean.high / worked.std())
    assert mean.favoured == "m"


def test_means_scores_and_histograms_are_in_units(hours, found):
    predicted, _, group, _ = hours
    for facts in found.groups:
        own = predicted[group == facts.label]
        assert facts.mean_score.value == pytest.approx(own.mean())
        assert facts.mean_score.low < own.mean() < facts.mean_score.high
        counts = np.histogram(own, bins=found.score_edges)[0]
        assert facts.score_counts == pytest.approx(counts, abs=1)  # rounding at an edge
    ends = found.score_edges[0], found.score_edges[-1]
    assert ends == pytest.approx((predicted.min(), predicted.max()))
    people = found.individuals
    assert people.scores == tuple(predicted[list(people.rows)])
    pairs = people.pairs["fair"]
    first, second = (np.array(people.scores)[list(at)] for at in (pairs.first, pairs.second))
    assert pairs.score_gap == pytest.approx(np.abs(first - second))
    nearest = found.matching.nearest_fair
    assert nearest.least_gap == pytest.approx(found.gap("wasserstein_parity_gap").value)
    assert nearest.least_gap <= nearest.score_gap <= nearest.least_gap + nearest.slack + 1e-9
    assert nearest.slack == pytest.approx(0.005 * np.ptp(predicted))
    worst = found.subsets.subsets[0]
    inside = np.ones(200, dtype=bool)
    for condition in worst.conditions:
        values = hours[3][condition.column].to_numpy()
        above = values > condition.value
        inside &= above if condition.operator == ">" else ~above
    means = [predicted[inside & (group == label)].mean() for label in ("f", "m")]
    assert worst.gap == pytest.approx(means[1] - means[0])


def test_what_needs_decisions_is_absent(found):
    assert found.threshold is None
    assert found.n_selected is None
    assert found.selection_ratio.value is None
    assert found.impact == ()
    assert found.undecided is None
    assert found.refusals == ()
    assert {gap.name for gap in found.gaps}.isdisjoint(
        {"demographic_parity_gap", "total_variation_parity_gap", "true_positive_gap"}
    )
    for facts in found.groups:
        assert facts.selection_rate.value is None
        assert facts.accuracy is None
        assert facts.calibration == ()
    assert all(own.flips is None for own in found.matching.matched_gaps)
    assert "joint" not in found.individuals.pairs
    assert found.individuals.selected == ()
    assert found.individuals.labels == ()
    assert {"threshold", "outcome", "pos_label"}.isdisjoint(found.provenance.settings)
    assert repr(found).endswith(f"largest Δ‾DP {found.gap('mean_parity_gap').value:.3f}>")
    assert Audit.from_json(found.to_json()) == found


def test_predictions_that_fill_the_unit_interval_have_the_facts_of_probabilities():
    random = np.random.default_rng(1)
    scores, group = random.uniform(size=120), np.repeat(["a", "b", "c"], 40)
    scores[:2] = 0.0, 1.0
    weights = random.uniform(0.5, 2.0, 120)
    given = {"sensitive_features": group, "sample_weight": weights, **QUICK}
    as_real, as_score = audit(scores, kind="number", **given), audit(scores, **given)
    for name in ("mean_parity_gap", "wasserstein_parity_gap", "ks_parity_gap"):
        assert as_real.gap(name) == as_score.gap(name)
    assert as_real.groups[0].score_counts == as_score.groups[0].score_counts
    mean = np.average(scores, weights=weights)
    variance = np.average((scores - mean) ** 2, weights=weights)
    assert (as_real.spread.of, as_real.spread.value) == (
        "predictions",
        pytest.approx(np.sqrt(variance)),
    )


def test_another_unit_changes_no_relative_gap(hours):
    predicted, worked, group, _ = hours
    given = {"sensitive_features": group, "kind": "number", **QUICK}
    plain = audit(predicted, y_true=worked, **given)
    minutes = audit(60.0 * predicted - 500.0, y_true=60.0 * worked - 500.0, **given)
    for gap in plain.gaps:
        other = minutes.gap(gap.name)
        factor = 60.0 if gap.name in ("mean_parity_gap", "wasserstein_parity_gap") else 1.0
        ends = [factor * end for end in (gap.value, gap.low, gap.high)]
        assert [other.value, other.low, other.high] == pytest.approx(ends, rel=1e-6)


def test_low_predictions_can_be_the_good_ones(hours):
    predicted, _, group, _ = hours
    found = audit(predicted, sensitive_features=group, kind="number", favourable="low", **QUICK)
    assert found.gap("mean_parity_gap").favoured == "f"


def test_constant_predictions_have_no_gap_and_no_relative_gap(hours):
    found = audit(np.full(200, 40.0), sensitive_features=hours[2], kind="number", **QUICK)
    assert [gap.value for gap in found.gaps] == [0.0, 0.0, 0.0]
    assert {group.mean_score.value for group in found.groups} == {40.0}
    assert found.spread.value == 0.0


def test_a_regressor_predicts_the_people(hours):
    _, worked, group, X = hours
    model = LinearRegression().fit(X, worked)
    given = {"sensitive_features": group, "X": X, "kind": "number", **QUICK}
    assert audit(model, **given).gaps == audit(model.predict(X), **given).gaps
    classifier = LogisticRegression().fit(X, group)
    with pytest.raises(InputError, match="is a classifier"):
        predict_people(classifier, X, group)
    with pytest.raises(InputError, match="Pass X"):
        audit(model, sensitive_features=group, kind="number")


def test_models_are_compared_by_their_order(hours):
    predicted, _, group, X = hours
    found = compare_models(
        {"plain": predicted, "half": predicted / 2, "turned": -predicted},
        sensitive_features=group,
        X=X,
        kind="number",
        **QUICK,
    )
    assert [pair.rank_agreement["f"] for pair in found.pairs] == pytest.approx([1.0, -1.0])
    assert all(pair.decisions == {} for pair in found.pairs)
    # One range for all of them, from the least of the turned to the largest of the plain.
    slacks = [audit.matching.nearest_fair.slack for audit in found.audits]
    assert slacks == pytest.approx([0.005 * 2.0 * predicted.max()] * 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"threshold": 0.3}, "threshold=0.3"),
        ({"outcome": "hired"}, "outcome='hired'"),
        ({"pos_label": "yes"}, "pos_label='yes'"),
        ({"kind": "rank"}, "kind must be one of 'probability', 'number'"),
        ({"y_true": np.full(200, np.nan)}, "y_true has 200 missing"),
        ({"y_true": np.ones(3)}, "y_true has 3 rows"),
        ({"y_score": np.ones(3)}, "y_score has 3 rows"),
        ({"y_score": np.full(200, np.inf)}, "y_score has 200 entries"),
        ({"y_score": np.repeat([-1.7e308, 1.7e308], 100)}, "a range too wide"),
    ],
)
def test_what_does_not_fit_predictions_is_an_error(hours, given, words):
    predicted, _, group, _ = hours
    with pytest.raises(InputError, match=words):
        audit(**{"y_score": predicted, "sensitive_features": group, "kind": "number", **given})


def test_nothing_is_filed_flipped_or_streamed(hours, found, tmp_path):
    predicted, _, group, _ = hours
    with pytest.raises(InputError, match="no rates to file"):
        write_tables([found], tmp_path)
    with pytest.raises(InputError, match="privileged='m'"):
        compare_models(
            {"a": predicted, "b": predicted},
            sensitive_features=group,
            privileged="m",
            kind="number",
        )
    with pytest.raises(InputError, match="Audit predictions in one file"):
        audit_dataset("scores", Roles(scores=["s"], sensitive="g"), kind="number")
    with pytest.raises(InputError, match="kind='number'"):
        audit(predicted, sensitive_features=group)
