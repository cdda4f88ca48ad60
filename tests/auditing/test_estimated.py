"""Audits of groups that are known only as probabilities."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit, compare_models, group_probabilities
from fairmatch.auditing.facts import Audit
from fairmatch.cli.main import main
from fairmatch.exceptions import GroupError, InputError
from fairmatch.measures import conditional_gaps, demographic_parity_gap

SETTINGS = {"n_resamples": 100, "n_subsets": 20}


def drawn(n_rows=600, n_groups=2, seed=0):
    generator = np.random.default_rng(seed)
    probabilities = generator.dirichlet(np.ones(n_groups) * 0.8, n_rows)
    groups = (generator.random(n_rows)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    scores = generator.uniform(size=n_rows) * np.where(groups == 0, 0.8, 1.0)
    labels = generator.integers(2, size=n_rows)
    names = np.array(list("abcd"), dtype=object)[groups]
    table = pd.DataFrame(probabilities, columns=list("abcd")[:n_groups])
    return group_probabilities(table), scores, labels, names


@pytest.mark.parametrize("n_groups", [2, 4])
def test_three_answers(n_groups):
    groups, scores, labels, names = drawn(2000, n_groups)
    known = np.where(np.random.default_rng(1).random(2000) < 0.3, names, None)
    found = audit(scores, sensitive_features=groups, y_true=labels, known=known, **SETTINGS)
    own = {gap.name: gap for gap in found.estimated.gaps}
    assert set(own) == {
        "demographic_parity_gap",
        "mean_parity_gap",
        "true_positive_gap",
        "false_positive_gap",
        "equalized_odds_gap",
    }
    truth = demographic_parity_gap(None, scores, sensitive_features=names)
    gap = own["demographic_parity_gap"]
    assert gap.assumed.value == demographic_parity_gap(None, scores, sensitive_features=groups)
    assert gap.low_limit <= gap.low <= gap.assumed.value <= gap.high <= gap.high_limit
    assert gap.low_limit <= truth <= gap.high_limit
    assert gap.calibrated.low <= truth <= gap.calibrated.high
    assert gap.thresholded == demographic_parity_gap(
        None, scores, sensitive_features=groups.most_likely
    )
    assert found.gap("demographic_parity_gap").value == gap.assumed.value
    assert found.estimated.n_known == (known != None).sum()  # noqa: E711
    assert found.estimated.smallest_cell >= 50
    assert found.estimated.calibration_p_value > 0.01
    assert len(found.pair_gaps) == (0 if n_groups == 2 else 8 * 6)
    assert Audit.from_json(found.to_json()) == found


def test_the_number_of_people_is_that_of_persons():
    groups, scores, _, _ = drawn()
    found = audit(scores, sensitive_features=groups, **SETTINGS)
    assert found.n_rows == 600
    assert sum(group.n_rows for group in found.groups) == 600
    for k, group in enumerate(found.groups):
        own = groups.values[:, k]
        assert group.n_rows == round(own.sum())
        assert group.effective_size == pytest.approx(own.sum() ** 2 / (own**2).sum())
        assert sum(group.score_counts) == group.n_rows
    # Two rows of a person are worth one.
    twice = np.repeat(np.arange(600), 2)
    doubled = audit(scores[twice], sensitive_features=groups[twice], ids=twice, **SETTINGS)
    one, two = (own.gap("mean_parity_gap") for own in (found, doubled))
    assert (two.low, two.high) == pytest.approx((one.low, one.high))


def test_groups_that_cannot_differ_have_a_ratio_of_one():
    half = group_probabilities(np.full((600, 2), 0.5), labels=["a", "b"])
    for rate in (0.03, 0.5):
        decisions = (np.random.default_rng(0).random(600) < rate).astype(float)
        found = audit(decisions, sensitive_features=half, **SETTINGS)
        ratio, gap = found.selection_ratio, found.gap("demographic_parity_gap")
        assert (ratio.value, ratio.low, ratio.high) == (1.0, 1.0, 1.0)
        assert (gap.value, gap.low, gap.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("n_rows", "base"), [(200, 0.1), (1000, 0.04), (1000, 0.4)])
@pytest.mark.parametrize("spread", [0.4, 5.0])  # areas of one group each, and mixed areas
def test_the_ratio_holds_the_truth_as_often_as_it_says(n_rows, base, spread):
    generator = np.random.default_rng(0)
    areas = generator.dirichlet([spread, spread], 40)
    rates = base * (0.6 + 0.8 * areas[:, 0])
    first, second = (rates @ areas) / areas.sum(axis=0)
    truth, held = min(first, second) / max(first, second), 0
    for _ in range(200):
        area = generator.integers(40, size=n_rows)
        decisions = (generator.random(n_rows) < rates[area]).astype(float)
        groups = group_probabilities(areas[area], labels=["a", "b"])
        found = audit(decisions, sensitive_features=groups, **SETTINGS).selection_ratio
        held += found.low <= truth <= found.high
    assert held >= 182  # of 95 % of 200, which is 190; fewer has a probability of 1 %


def test_certain_groups_have_the_ordinary_audit():
    _, scores, labels, names = drawn()
    certain = group_probabilities(pd.get_dummies(pd.Series(names)).astype(float))
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=600)})
    shared = {"X": X, "y_true": labels, **SETTINGS}
    found = audit(scores, sensitive_features=certain, **shared)
    assert found.to_json() == audit(scores, sensitive_features=names, **shared).to_json()
    assert found.estimated is None


def test_nobody_is_matched_or_shown():
    groups, scores, _, _ = drawn()
    X = pd.DataFrame({"x": scores, "surname": np.arange(600)})
    found = audit(scores, sensitive_features=groups, X=X, **SETTINGS)
    assert found.individuals is None
    assert found.subsets is None
    assert "whose group is known can be matched" in found.matching.refused


def test_predictions_of_a_number():
    groups, scores, _, names = drawn(1500)
    found = audit(10.0 * scores, sensitive_features=groups, kind="number", **SETTINGS)
    (gap,) = [own for own in found.estimated.gaps if own.name == "mean_parity_gap"]
    truth = abs(np.mean(10.0 * scores[names == "a"]) - np.mean(10.0 * scores[names == "b"]))
    assert gap.low_limit <= truth <= gap.high_limit
    assert found.gap("relative_mean_parity_gap").value == pytest.approx(
        gap.assumed.value / (10.0 * scores).std()
    )


def test_what_needs_known_groups_is_refused():
    groups, scores, _, names = drawn()
    with pytest.raises(InputError, match=r"given was given.*demographic_parity_gap take both"):
        audit(scores, sensitive_features=groups, given=names)
    with pytest.raises(InputError, match="matched only if their groups are known"):
        audit(scores, sensitive_features=groups, X=pd.DataFrame({"x": scores}), similarity=["x"])
    with pytest.raises(GroupError, match=r"demographic_parity_gap\(…, given=…\) and the other"):
        conditional_gaps(None, scores, sensitive_features=groups, given=names)
    assert demographic_parity_gap(None, scores, sensitive_features=groups, given=names) > 0.0
    with pytest.raises(GroupError, match="estimators that need no group"):
        np.asarray(groups)
    with pytest.raises(InputError, match="Audit each model by itself"):
        compare_models({"a": scores, "b": scores}, sensitive_features=groups)
    with pytest.raises(InputError, match="known was given"):
        audit(scores, sensitive_features=names, known=names)
    with pytest.raises(GroupError, match="known holds 'z'"):
        audit(scores, sensitive_features=groups, known=np.full(600, "z"))


def test_wrong_probabilities_are_noticed_where_groups_are_known():
    groups, scores, _, names = drawn(1000)
    wrong = group_probabilities(groups.values[:, ::-1], labels=["a", "b"])
    found = audit(scores, sensitive_features=wrong, known=names, **SETTINGS)
    assert found.estimated.calibration_p_value < 1e-6
    assert any("a test shows that the probabilities are not calibrated" in n for n in found.notes)


def test_rows_of_weight_zero_are_left_out():
    groups, scores, _, names = drawn()
    weights = np.arange(600) % 3
    found = audit(scores, sensitive_features=groups, sample_weight=weights, known=names, **SETTINGS)
    kept = weights > 0
    same = audit(
        scores[kept],
        sensitive_features=groups[kept],
        sample_weight=weights[kept],
        known=names[kept],
        **SETTINGS,
    )
    assert found.estimated == same.estimated


def test_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    groups, scores, _, names = drawn(300)
    table = pd.DataFrame(groups.values, columns=["a", "b"])
    table["score"], table["true"] = scores, np.where(np.arange(300) % 3 == 0, names, None)
    table.to_csv("people.csv", index=False)
    typed = ["audit", "people.csv", "--score", "score", "--json", "facts.json"]
    assert main([*typed, "--group-probabilities", "a,b", "--known", "true"]) == 0
    shown = capsys.readouterr().out
    assert "Without that assumption, the gap of selection rates lies between" in shown
    assert shown.count("only people whose group is known can be matched") == 1
    found = Audit.from_json((tmp_path / "facts.json").read_text())
    read = pd.read_csv("people.csv")
    same = audit(
        read["score"], sensitive_features=group_probabilities(read[["a", "b"]]), known=read["true"]
    )
    assert found.estimated == same.estimated
    for wrong in ([], ["--sensitive", "true", "--known", "true"]):
        assert main([*typed, *wrong]) == 2
