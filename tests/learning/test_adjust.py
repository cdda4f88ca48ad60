"""Adjustments of scores alone: their bound, their file, and what damages it."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import wasserstein_distance
from sklearn.linear_model import LogisticRegression

from fairmatch import QuantileAlignmentClassifier, ScoreAdjustment, align_scores, fit_adjustment
from fairmatch.exceptions import (
    ConstantModelWarning,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
    ModelFileError,
    SmallGroupWarning,
)
from fairmatch.measures import (
    demographic_parity_gap,
    true_positive_gap,
    wasserstein_parity_gap,
)


def scored(n=400, seed=0):
    generator = np.random.default_rng(seed)
    group = generator.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    margin = generator.normal(size=n) + 0.9 * (group == "b") - 0.5 * (group == "c")
    scores = 1.0 / (1.0 + np.exp(-margin))
    return scores, group, (generator.random(n) < scores).astype(int)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.02, 0.05, 0.1]), st.booleans())
def test_the_least_strength_that_keeps_the_bound(seed, bound, weighted):
    scores, group, _ = scored(300, seed)
    scores = np.round(scores, 2) if seed % 2 else scores
    weights = np.random.default_rng(seed).uniform(0.2, 2.0, 300) if weighted else None

    def gap(strength):
        moved = align_scores(scores, group, strength=strength, sample_weight=weights)
        return demographic_parity_gap(None, moved, sensitive_features=group, sample_weight=weights)

    gaps = [gap(strength) for strength in np.linspace(0, 1, 201)]
    within = [place for place, value in enumerate(gaps) if value <= bound]
    if not within:
        with pytest.warns(GapNotReachedWarning, match="the smallest gap is"):
            found = fit_adjustment(scores, group, max_gap=bound, sample_weight=weights)
        assert gap(found.strength) == pytest.approx(min(gaps))
        return
    found = fit_adjustment(scores, group, max_gap=bound, sample_weight=weights)
    assert found.strength == pytest.approx(within[0] / 200)


@pytest.mark.parametrize("scale", ["rank", "real"])
def test_a_bound_of_other_scores_is_a_distance(scale):
    scores, group, _ = scored()
    margins = 40.0 * np.log(scores / (1 - scores))
    bound = 0.05 if scale == "rank" else 8.0
    found = fit_adjustment(margins, group, max_gap=bound, scale=scale)
    moved = found.apply(margins, group)
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]

    def distance(values):
        return max(wasserstein_distance(values[group == x], values[group == y]) for x, y in pairs)

    assert distance(moved) <= bound
    before = found.parts.move(
        margins, np.searchsorted(found.labels, group), found.strength - 1 / 200
    )
    assert distance(before) > bound


def test_equal_opportunity_bounds_the_gap_of_true_positives():
    scores, group, y = scored()
    how = {"criterion": "equal_opportunity", "y_true": y}
    found = fit_adjustment(scores, group, max_gap=0.05, **how)
    assert true_positive_gap(y, found.apply(scores, group), sensitive_features=group) <= 0.05
    assert found.strength < 1.0


@pytest.mark.parametrize(
    "how",
    [{}, {"strength": 0.3}, {"decisions": "threshold"}, {"scale": "rank"}, {"scale": "real"}],
    ids=str,
)
def test_a_file_holds_all_of_it(how, tmp_path):
    scores, group, y = scored()
    made = fit_adjustment(scores, group, y_true=y, **how)
    file = made.save(tmp_path / "adjustment.json")
    again = ScoreAdjustment.load(file)
    other = np.random.default_rng(1).random(50)
    assert_array_equal(made.apply(other, group[:50]), again.apply(other, group[:50]))
    assert again.decisions == made.decisions
    assert again.save(tmp_path / "again.json").read_text() == file.read_text()
    assert len(repr(again)) < 600


@pytest.mark.parametrize(
    ("how", "damage"),
    [
        ({}, {"kind": "something"}),
        ({}, {"version": 99}),
        ({}, {"strength": 2.0}),
        ({}, {"strength": None}),
        ({}, {"strength": True}),
        ({}, {"strength": 10**400}),
        ({}, {"decisions": "guess"}),
        ({}, {"decisions": ["align"]}),
        ({}, {"decisions": "threshold"}),
        ({}, {"parts": {}}),
        ({}, {"parts": None}),
        ({}, {"pooled": ["d"]}),
        ({}, {"pooled": "d"}),
        ({}, {"ignored": [["d"]]}),
        ({}, {"labels": ["a", "a", "b"]}),
        ({}, {"labels": "abc"}),
        ({}, {"labels": ["a", "b"]}),
        ({}, {"labels": [["a"], ["b"], ["c"]]}),
        ({}, {"curves": [{"knots": [1.0, 0.0], "values": [0.0, 1.0]}] * 3}),
        ({}, {"curves": [{"knots": [0.0, 1.0], "values": [1.0, 0.0]}] * 3}),
        ({}, {"curves": [{"knots": [0.0], "values": [float("nan")]}] * 3}),
        ({}, {"curves": [{"knots": [10**400], "values": [0.0]}] * 3}),
        ({}, {"curves": [{"knots": [0.0]}] * 3}),
        ({}, {"curves": 3}),
        ({}, {"scale": "logit"}),
        ({}, {"scale": "rank"}),
        ({}, {"shares": "many"}),
        ({}, {"attributes": 3}),
        ({"decisions": "threshold"}, {"thresholds": [0.5]}),
        ({"decisions": "threshold"}, {"thresholds": ["all", 1, 1]}),
        ({"decisions": "threshold"}, {"thresholds": [float("nan"), 1, 1]}),
        ({"decisions": "threshold"}, {"criterion": "luck"}),
        ({"decisions": "threshold"}, {"criterion": []}),
    ],
    ids=str,
)
def test_damaged_files_are_refused(how, damage, tmp_path):
    scores, group, y = scored()
    file = fit_adjustment(scores, group, y_true=y, **how).save(tmp_path / "adjustment.json")
    whole = json.loads(file.read_text())
    (name,) = damage
    damaged = whole | ({"parts": whole["parts"] | damage} if name in whole["parts"] else damage)
    file.write_text(json.dumps(damaged))
    with pytest.raises(ModelFileError):
        ScoreAdjustment.load(file)


def test_what_is_no_file_of_an_adjustment_is_refused(tmp_path):
    file = tmp_path / "adjustment.json"
    for text in ('{"kind": "fairmatch', "[" * 100_000):
        file.write_text(text)
        with pytest.raises(ModelFileError, match="not valid JSON"):
            ScoreAdjustment.load(file)
    with pytest.raises(ModelFileError, match="not a plain file"):
        ScoreAdjustment.load(tmp_path)
    with pytest.raises(ModelFileError, match="There is no file"):
        ScoreAdjustment.load(tmp_path / "none.json")


def test_bad_input_is_named():
    scores, group, y = scored()
    with pytest.raises(LabelError, match="needs the true labels"):
        fit_adjustment(scores, group, decisions="threshold")
    with pytest.raises(LabelError, match="compares people of the same class"):
        fit_adjustment(scores, group, criterion="equal_opportunity")
    with pytest.raises(InputError, match="one increasing curve per group"):
        fit_adjustment(scores, group, y_true=y, criterion="equalized_odds")
    with pytest.raises(InputError, match="scale='rank'"):
        fit_adjustment(3.0 * scores, group)
    with pytest.raises(InputError, match="needs probabilities"):
        fit_adjustment(3.0 * scores, group, y_true=y, decisions="threshold", scale="real")
    with pytest.raises(InputError, match="decisions must be"):
        fit_adjustment(scores, group, decisions="draw")
    with pytest.raises(InputError, match="max_gap must be"):
        fit_adjustment(scores, group, max_gap=2)
    with pytest.raises(GroupError, match="holds 'z'; the model knows"):
        fit_adjustment(scores, group).apply([0.5], ["z"])
    with pytest.raises(InputError, match="2 rows where 1"):
        fit_adjustment(scores, group).apply([0.5], ["a", "b"])


def test_several_attributes_are_their_combinations():
    scores, group, _ = scored()
    frame = pd.DataFrame({"group": group, "old": np.arange(len(group)) % 2 == 0})
    found = fit_adjustment(scores, frame)
    assert found.labels[0] == "a, False"
    assert demographic_parity_gap(
        None, found.apply(scores, frame), sensitive_features=frame
    ) < 0.1 < demographic_parity_gap(None, scores, sensitive_features=frame)  # fmt: skip


@pytest.mark.parametrize("how", ["align", "threshold"])
def test_attributes_are_found_by_their_names(how, tmp_path):
    generator = np.random.default_rng(0)
    # Both attributes have the values a and b, so that their order decides who is who.
    people = pd.DataFrame({"one": list("aabb") * 50, "two": list("abab") * 50})
    scores = generator.random(200) * (1.0 + (people["one"] == "a")) / 2.0
    y = generator.integers(0, 2, 200)
    adjustment = fit_adjustment(scores, people, y_true=y, decisions=how)
    expected = adjustment.apply(scores, people)
    assert_array_equal(adjustment.apply(scores, people[["two", "one"]]), expected)
    again = ScoreAdjustment.load(adjustment.save(tmp_path / "adjustment.json"))
    assert_array_equal(again.apply(scores, people[["two", "one"]]), expected)
    with pytest.raises(GroupError, match="those of fit were 'one', 'two'"):
        again.apply(scores, people.rename(columns={"one": "three"}))
    joined = people["one"] + ", " + people["two"]
    assert_array_equal(again.apply(scores, joined), expected)


def few_people():
    """Two groups of 60, and two of a few people each."""
    generator = np.random.default_rng(0)
    group = np.repeat(["a", "b", "odd", "rare"], [60, 60, 3, 2])
    scores = generator.random(125) * np.where(group == "a", 1.0, 0.7)
    return scores, group, generator.integers(0, 2, 125)


def test_small_groups_are_named_pooled_or_left_alone(tmp_path):
    scores, group, _ = few_people()
    with pytest.raises(GroupError, match=r"'odd': 3, 'rare': 2.*pool.*ignore"):
        fit_adjustment(scores, group, small_groups="error")
    with pytest.raises(GroupError, match="fewer than 2 rows"):
        fit_adjustment(scores, np.arange(125).astype(str))  # everybody is a group
    with pytest.warns(SmallGroupWarning, match="'odd': 3, 'rare': 2"):
        fit_adjustment(scores, group)
    pooled = fit_adjustment(scores, group, small_groups=("pool", 4))
    named = np.where(np.isin(group, ["odd", "rare"]), "other", group)
    expected = fit_adjustment(scores, named).apply(scores, named)
    ignored = fit_adjustment(scores, group, small_groups="ignore")
    few = np.isin(group, ["odd", "rare"])
    for adjustment in (pooled, ScoreAdjustment.load(pooled.save(tmp_path / "pooled.json"))):
        assert_array_equal(adjustment.apply(scores, group), expected)
        assert_array_equal(adjustment.apply(scores, named), expected)
    for adjustment in (ignored, ScoreAdjustment.load(ignored.save(tmp_path / "ignored.json"))):
        moved = adjustment.apply(scores, group)
        assert_array_equal(moved[few], scores[few])
        alone = fit_adjustment(scores[~few], group[~few]).apply(scores[~few], group[~few])
        assert_array_equal(moved[~few], alone)


@pytest.mark.parametrize("small", ["pool", "ignore"])
def test_the_adjustment_of_a_classifier_knows_its_small_groups(small, tmp_path):
    scores, group, y = few_people()
    model = QuantileAlignmentClassifier(LogisticRegression(), small_groups=(small, 4), cv=3).fit(
        scores[:, None], y, sensitive_features=group
    )
    raw = model.estimator_.predict_proba(seen(scores, group, model))[:, 1]
    again = ScoreAdjustment.load(model.adjustment_.save(tmp_path / "adjustment.json"))
    expected = model.predict_proba(scores[:, None], sensitive_features=group)[:, 1]
    assert np.allclose(again.apply(raw, group), expected, atol=1e-15)


def seen(scores, group, model):
    """Return what the wrapped model sees: the score, and a column for every group but the first."""
    named = group if "odd" in model.groups_ else np.where(group > "b", "other", group)
    return np.column_stack([scores, *(named == label for label in model.groups_[1:])])


def test_thresholds_that_decide_nothing_are_told():
    scores, group, y = np.array([0.2, 0.2, 0.6, 0.6]), list("aabb"), [0, 1, 1, 1]
    with pytest.warns(ConstantModelWarning, match="accept everybody keep the bound"):
        found = fit_adjustment(scores, group, y_true=y, decisions="threshold", max_gap=0.0)
    assert (found.apply(scores, group) >= 0.5).all()


def test_an_unknown_scale_is_named():
    with pytest.raises(InputError, match="scale must be one of"):
        fit_adjustment([0.1, 0.2, 0.3, 0.4], list("aabb"), scale="foo")


def titled(n_rows=3000, seed=0):
    """Return scores that differ by sex in one of two titles only, with labels."""
    random = np.random.default_rng(seed)
    sex, title = random.choice(["f", "m"], n_rows), random.choice(["clerk", "head"], n_rows)
    shift = np.where((title == "head") & (sex == "f"), 0.2, 0.0)
    scores = np.clip(random.beta(3, 3, n_rows) - shift, 0.0, 1.0)
    labels = (random.random(n_rows) < scores + shift).astype(int)
    return (
        scores,
        sex,
        pd.DataFrame({"title": title, "age": random.integers(20, 60, n_rows)}),
        labels,
    )


@pytest.mark.parametrize("decisions", ["align", "threshold"])
def test_scores_are_adjusted_within_strata(decisions, tmp_path):
    scores, sex, factors, labels = titled()
    how = {"y_true": labels, "decisions": decisions, "max_gap": 0.02}
    found = fit_adjustment(scores, sex, given=factors.title, **how)
    adjusted = found.apply(scores, sex, given=factors.title)
    for title in ("clerk", "head"):  # each is the adjustment of these people alone, to the bit
        rows = (factors.title == title).to_numpy()
        alone = fit_adjustment(scores[rows], sex[rows], **{**how, "y_true": labels[rows]})
        assert_array_equal(adjusted[rows], alone.apply(scores[rows], sex[rows]))
        gap = demographic_parity_gap(None, adjusted[rows], sensitive_features=sex[rows])
        assert gap <= 0.02
    one = fit_adjustment(scores, sex, given=np.zeros(3000), **how)
    plain = fit_adjustment(scores, sex, **how).apply(scores, sex)
    assert_array_equal(one.apply(scores, sex, given=np.zeros(3000)), plain)
    # Saved and loaded; people with a new title are adjusted like everybody.
    again = ScoreAdjustment.load(found.save(tmp_path / "a.json"))
    assert again.given == found.given
    new = np.where(np.arange(3000) % 2, factors.title, "guard")
    assert_array_equal(again.apply(scores, sex, given=new), found.apply(scores, sex, given=new))
    assert_array_equal(again.apply(scores, sex, given=new)[::2], plain[::2])
    crossed = fit_adjustment(scores, sex, given=factors, **how)  # ages in bands
    assert len(crossed.given.labels) == 10
    again = ScoreAdjustment.load(crossed.save(tmp_path / "b.json"))
    assert_array_equal(again.apply(scores, sex, factors), crossed.apply(scores, sex, factors))
    for wrong in (None, factors):
        with pytest.raises(InputError, match="Pass the same factors"):
            found.apply(scores, sex, given=wrong)
    with pytest.raises(InputError, match="with no factors as given"):
        fit_adjustment(scores, sex, **how).apply(scores, sex, given=factors)


def test_alignment_within_strata_equalises_the_distributions_there():
    scores, sex, factors, _ = titled()
    aligned = align_scores(scores, sex, given=factors.title)
    assert (
        wasserstein_parity_gap(None, aligned, sensitive_features=sex, given=factors.title) < 0.005
    )
    assert wasserstein_parity_gap(None, scores, sensitive_features=sex, given=factors.title) > 0.05
