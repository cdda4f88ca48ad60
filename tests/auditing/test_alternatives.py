"""Less discriminatory alternatives: who is as accurate, whose gap is smaller, and how sure."""

import numpy as np
import pytest
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from fairmatch import find_alternatives
from fairmatch.auditing.facts import Alternatives
from fairmatch.exceptions import InputError, LabelError


def people(n=900, n_groups=3, seed=0):
    generator = np.random.default_rng(seed)
    groups = generator.integers(n_groups, size=n)
    labels = generator.integers(2, size=n)
    return generator, groups, labels


def test_numbers_are_those_of_the_two_models():
    generator, groups, labels = people()
    models = {name: generator.random(len(labels)) for name in ("a", "b", "c")}
    found = find_alternatives(models, y_true=labels, sensitive_features=groups)
    assert found.accuracy == pytest.approx(accuracy_score(labels, models["a"] >= 0.5))
    for one in found.tried:
        decided = models[one.name] >= 0.5
        assert one.accuracy == pytest.approx(accuracy_score(labels, decided))
        oracle = demographic_parity_difference(labels, decided, sensitive_features=groups)
        assert one.gap == pytest.approx(oracle)
        assert one.gap_change.value == pytest.approx(one.gap - found.gap)
        assert sum(one.gained.values()) == np.sum(decided & (models["a"] < 0.5))
        assert sum(one.lost.values()) == np.sum(~decided & (models["a"] >= 0.5))


def test_models_in_place_of_scores_are_told():
    generator, groups, labels = people()
    models = {"a": generator.random(len(labels)), "b": LogisticRegression()}
    with pytest.raises(InputError, match=r"got a model \(LogisticRegression\).*predict_proba"):
        find_alternatives(models, y_true=labels, sensitive_features=groups)


def test_gaps_of_error_rates_are_fairlearns():
    generator, groups, labels = people()
    models = {name: generator.random(len(labels)) for name in ("a", "b")}
    found = find_alternatives(
        models, y_true=labels, sensitive_features=groups, gap_measure="equalized_odds_gap"
    )
    decided = models["b"] >= 0.5
    worst = equalized_odds_difference(labels, decided, sensitive_features=groups)
    assert found.tried[0].gap <= worst <= 2.0 * found.tried[0].gap


def test_weights_count_like_copies():
    generator, groups, labels = people(200)
    models = {name: generator.random(len(labels)) for name in ("a", "b")}
    weights = generator.integers(1, 4, size=len(labels))
    copied = np.repeat(np.arange(len(labels)), weights)
    once = find_alternatives(
        models, y_true=labels, sensitive_features=groups, sample_weight=weights
    )
    again = find_alternatives(
        {name: scores[copied] for name, scores in models.items()},
        y_true=labels[copied],
        sensitive_features=groups[copied],
    )
    assert once.tried[0].accuracy == pytest.approx(again.tried[0].accuracy)
    assert once.tried[0].gap_change.value == pytest.approx(again.tried[0].gap_change.value)


def test_a_copy_of_the_baseline_is_no_alternative():
    generator, groups, labels = people()
    scores = generator.random(len(labels))
    found = find_alternatives({"a": scores, "b": scores}, y_true=labels, sensitive_features=groups)
    assert not found.found
    assert "No less discriminatory alternative was found" in found.sentence()
    assert found.tried[0].gap_change.value == 0.0


def test_more_models_widen_the_intervals():
    generator, groups, labels = people()
    models = {f"m{k}": generator.random(len(labels)) for k in range(12)}
    few = {name: models[name] for name in ("m0", "m1")}
    (one,) = find_alternatives(few, y_true=labels, sensitive_features=groups).tried
    many = find_alternatives(models, y_true=labels, sensitive_features=groups).tried[0]
    assert many.gap_change.high > one.gap_change.high
    assert many.accuracy_change.low < one.accuracy_change.low


def test_intervals_cover_what_is_true():
    """A population is known: the intervals of both changes hold it at their stated rate."""
    generator = np.random.default_rng(5)
    n, repeats = 600, 150
    # Within each group and label: how likely each model is to select.
    before, after = np.array([[0.2, 0.7], [0.4, 0.9]]), np.array([[0.25, 0.75], [0.3, 0.8]])
    true_accuracy = [np.mean([1 - p[:, 0].mean(), p[:, 1].mean()]) for p in (before, after)]
    true_gap = [abs(p[1].mean() - p[0].mean()) for p in (before, after)]
    held = np.zeros(2)
    for _ in range(repeats):
        groups, labels = generator.integers(2, size=n), generator.integers(2, size=n)
        drawn = generator.random(n)  # both models look at the same thing, so they agree often
        models = {
            "before": (drawn < before[groups, labels]).astype(float),
            "after": (drawn < after[groups, labels]).astype(float),
        }
        (one,) = find_alternatives(models, y_true=labels, sensitive_features=groups).tried
        for k, (change, truth) in enumerate(
            [(one.accuracy_change, true_accuracy), (one.gap_change, true_gap)]
        ):
            held[k] += change.low <= truth[1] - truth[0] <= change.high
    assert (held / repeats >= 0.91).all(), held / repeats


def decided(generator, before, after, n):
    """Two models' decisions on people, by how likely each is to select, by group and label."""
    groups, labels = generator.integers(2, size=n), generator.integers(2, size=n)
    drawn = generator.random(n)
    models = {
        name: (drawn < np.asarray(rates)[groups, labels]).astype(float)
        for name, rates in (("before", before), ("after", after))
    }
    return {"y_scores": models, "y_true": labels, "sensitive_features": groups}


UNEQUAL = [[0.1, 0.7], [0.4, 0.9]]  # by group and label; accuracy .775, gap .25
FAIRER = [[0.2, 0.85], [0.2, 0.85]]  # more accurate, no gap
BLUNT = [[0.4, 0.6], [0.4, 0.6]]  # no gap, accuracy .6
WIDER = [[0.1, 0.6], [0.4, 0.95]]  # as accurate, gap .325


@pytest.mark.parametrize(
    ("after", "n", "verdict", "reasons"),
    [
        (FAIRER, 20_000, "yes", ()),
        (FAIRER, 120, "not shown", ("its accuracy", "gap's change")),
        (BLUNT, 20_000, "no", ("less accurate",)),
        (WIDER, 20_000, "no", ("gap is not smaller",)),
        (UNEQUAL, 20_000, "not shown", ("gap's change",)),
        ([[0.15, 0.7], [0.33, 0.83]], 3000, "not shown", ("its accuracy",)),
    ],
)
def test_a_verdict_is_what_the_people_show(after, n, verdict, reasons):
    given = decided(np.random.default_rng(3), UNEQUAL, after, n)
    (one,) = find_alternatives(given.pop("y_scores"), **given).tried
    assert one.verdict == verdict
    assert len(one.reasons) == len(reasons)
    for words, reason in zip(reasons, one.reasons, strict=True):
        assert words in reason


def test_verdicts_are_seldom_wrong():
    """Neither "yes" is said of a model that truly is none, nor "no" of one that truly is."""
    generator = np.random.default_rng(4)
    # Less accurate by exactly the margin, and by a little less; both have a smaller gap.
    for change, wrong in ((0.0101, "yes"), (0.0099, "no")):
        after = [[0.2, 0.75 - 2 * change], [0.35, 0.9 - 2 * change]]
        said = []
        for _ in range(100):
            given = decided(generator, UNEQUAL, after, 3000)
            said.append(find_alternatives(given.pop("y_scores"), **given).tried[0].verdict)
        assert said.count(wrong) <= 8


def test_models_that_are_likely_and_not_shown_are_counted():
    after = [[0.15, 0.75], [0.3, 0.8]]  # truly as accurate, but 900 people do not show it
    given = decided(np.random.default_rng(6), UNEQUAL, after, 900)
    found = find_alternatives(given.pop("y_scores"), **given)
    (one,) = found.possible
    assert one.verdict == "not shown"
    assert one.smaller_gap
    assert not one.as_accurate
    assert "No less discriminatory alternative was shown" in found.sentence()
    assert "1 model has a gap that is shown to be smaller" in found.sentence()


def test_models_that_decide_are_shown_before_those_that_select_nobody():
    generator, groups, labels = people(2000, n_groups=2)
    nobody, blunt = np.zeros(len(labels)), generator.random(len(labels))
    models = {"plain": 0.9 * labels, "nobody": nobody, "blunt": blunt}
    found = find_alternatives(models, y_true=labels, sensitive_features=groups)
    assert not found.found
    assert not found.possible
    assert [one.name for one in found.foremost] == ["blunt"]
    words = found.why_shown(["plain", "blunt"])
    assert "whatever their accuracy, except those that select nobody" in words
    assert f"'blunt' (accuracy {found.tried[1].accuracy:.3f}" in words
    assert found.why_shown(["plain", "nobody"]) == ""
    only = {name: models[name] for name in ("plain", "nobody")}
    found = find_alternatives(only, y_true=labels, sensitive_features=groups)
    assert [one.name for one in found.foremost] == ["nobody"]
    assert "select nobody" not in found.why_shown(["plain", "nobody"])


def test_what_was_found_or_is_possible_is_shown_first():
    generator = np.random.default_rng(8)
    for n, kind, words in (
        (20_000, "found", "of the alternatives found"),
        (900, "possible", "as accurate by estimate"),
    ):
        given = decided(generator, UNEQUAL, [[0.15, 0.75], [0.3, 0.8]], n)
        given["y_scores"]["nobody"] = np.zeros(n)
        found = find_alternatives(given.pop("y_scores"), **given)
        assert [one.name for one in getattr(found, kind)] == ["after"]
        assert found.foremost == getattr(found, kind)
        assert words in found.why_shown(["before", "after"])


def test_facts_are_read_back():
    generator, groups, labels = people(100)
    models = {name: generator.random(len(labels)) for name in ("a", "b")}
    found = find_alternatives(models, y_true=labels, sensitive_features=groups)
    assert Alternatives.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y_scores": {"a": [0.5] * 4}}, InputError, "at least one other model"),
        ({"gap_measure": "nonsense"}, InputError, "must be one of"),
        ({"margin": -1.0}, InputError, "margin"),
        ({"confidence": 95}, InputError, "confidence"),
        (
            {"y_true": [1, 0, 1, 1], "gap_measure": "false_positive_gap"},
            LabelError,
            "has no rows with a negative label",
        ),
    ],
)
def test_what_cannot_be_compared_is_said(change, error, words):
    given = {
        "y_scores": {"a": [0.1, 0.9, 0.2, 0.8], "b": [0.2, 0.3, 0.9, 0.1]},
        "y_true": [0, 1, 0, 1],
        "sensitive_features": ["x", "x", "y", "y"],
        **change,
    }
    with pytest.raises(error, match=words):
        find_alternatives(given.pop("y_scores"), **given)


def test_scores_of_somebody_else_are_the_baseline():
    generator, groups, labels = people()
    deciles = generator.integers(1, 11, size=len(labels))
    own = generator.random(len(labels))
    found = find_alternatives(
        {"own": own},
        y_true=labels,
        sensitive_features=groups,
        baseline=deciles,
        baseline_threshold=7,
    )
    assert (found.baseline, found.is_given) == ("baseline", True)
    assert found.accuracy == pytest.approx(accuracy_score(labels, deciles >= 7))
    oracle = demographic_parity_difference(labels, deciles >= 7, sensitive_features=groups)
    assert found.gap == pytest.approx(oracle)
    named = find_alternatives(
        {"baseline": (deciles >= 7).astype(float), "own": own},
        y_true=labels,
        sensitive_features=groups,
    )
    assert named.tried == found.tried
    assert "whom none of these models has seen" in found.sentence()
    with pytest.raises(InputError, match="baseline"):
        find_alternatives({"own": own}, y_true=labels, sensitive_features=groups, baseline=deciles)


@pytest.mark.parametrize("measure", ["true_positive_gap", "demographic_parity_gap"])
def test_low_scores_may_be_the_good_ones(measure):
    # Turning scores and labels around changes the words, and no number.
    generator, groups, labels = people()
    models = {name: generator.random(len(labels)) for name in ("a", "b")}
    low = find_alternatives(
        models,
        y_true=labels,
        sensitive_features=groups,
        gap_measure=measure,
        favourable="low",
    )
    turned = find_alternatives(
        {name: 1.0 - scores for name, scores in models.items()},
        y_true=1 - labels,
        sensitive_features=groups,
        gap_measure=measure,
    )
    assert low.tried == turned.tried
    assert low.gap == turned.gap
    assert low.favourable == "low"
    with pytest.raises(InputError, match="favourable must be"):
        find_alternatives(models, y_true=labels, sensitive_features=groups, favourable="up")
