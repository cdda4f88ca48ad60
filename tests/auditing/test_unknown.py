"""The range of each gap over all groups that people without a group could belong to."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit
from fairmatch.measures import MEASURES
from fairmatch.measures.distributions import ScoredPeople
from fairmatch.people.groups import Groups
from fairmatch.people.people import Labels, People

NAMES = (
    "demographic_parity_gap",
    "mean_parity_gap",
    "wasserstein_parity_gap",
    "ks_parity_gap",
    "true_positive_gap",
    "equalized_odds_gap",
)


def drawn(seed, n_groups, n_unknown=7):
    generator = np.random.default_rng(seed)
    n_rows = 8 * n_groups + n_unknown
    groups = np.array([*"abc"[:n_groups] * 8, *[None] * n_unknown], dtype=object)
    scores = generator.uniform(size=n_rows).round(2)
    positive = generator.permutation(np.arange(n_rows) % 2)
    return groups, scores, positive


def every_gap(groups, scores, positive, n_groups):
    """Return every gap for every way in which the unknown people could belong to groups."""
    unknown = [row for row, group in enumerate(groups) if group is None]
    codes = np.array(["abc".find(group) if group else 0 for group in groups])
    for placed in product(range(n_groups), repeat=len(unknown)):
        codes[unknown] = placed
        people = People(Groups(codes.copy(), tuple("abc"[:n_groups])))
        people = People(people.groups, labels=Labels(positive.astype(float), (0, 1)))
        scored = ScoredPeople(people, scores)
        pairs = [(s, t) for s in range(n_groups) for t in range(s)]
        yield {name: max(MEASURES[name].between(scored, pair) for pair in pairs) for name in NAMES}


@pytest.mark.parametrize(("seed", "n_groups"), [(0, 2), (1, 2), (2, 2), (3, 3)])
def test_the_range_holds_every_gap(seed, n_groups):
    groups, scores, positive = drawn(seed, n_groups, 9 - 2 * (n_groups - 1))
    found = audit(
        scores,
        sensitive_features=groups,
        y_true=positive,
        min_group_size=2,
        n_resamples=100,
    )
    every = list(every_gap(groups, scores, positive, n_groups))
    for name in NAMES:
        low, high = found.gap(name).unknown_range
        values = [own[name] for own in every]
        assert low <= min(values) + 1e-12
        assert max(values) <= high + 1e-12
        if name != "wasserstein_parity_gap" and (n_groups == 2 or "mean" not in name):
            assert high == pytest.approx(max(values))  # the largest gap is reached
        if n_groups == 2 and MEASURES[name].distance is None and name != "equalized_odds_gap":
            assert min(values) - low < 0.1  # the smallest, up to single people
    for gap in found.pair_gaps:
        assert gap.unknown_range is None or gap.unknown_range[0] <= gap.value


def test_with_all_groups_known_there_is_no_range():
    groups, scores, _ = drawn(0, 2, 0)
    found = audit(scores, sensitive_features=groups, min_group_size=2, n_resamples=100)
    assert all(gap.unknown_range is None for gap in found.gaps)
    assert not any("not known" in note for note in found.notes)


def test_weights_count_as_copies():
    groups, scores, positive = drawn(5, 2)
    weights = 1.0 + positive
    settings = {"min_group_size": 2, "n_resamples": 100}
    weighted = audit(scores, sensitive_features=groups, sample_weight=weights, **settings)
    copies = np.repeat(np.arange(len(scores)), weights.astype(int))
    copied = audit(scores[copies], sensitive_features=groups[copies], **settings)
    for name in ("demographic_parity_gap", "ks_parity_gap", "wasserstein_parity_gap"):
        one, other = (own.gap(name).unknown_range for own in (weighted, copied))
        assert one == pytest.approx(other)
    low, high = weighted.gap("mean_parity_gap").unknown_range
    assert low <= copied.gap("mean_parity_gap").unknown_range[0] + 1e-12
    assert copied.gap("mean_parity_gap").unknown_range[1] <= high + 1e-12


def test_a_note_says_how_far_the_gap_could_change():
    groups, scores, _ = drawn(6, 2)
    found = audit(scores, sensitive_features=groups, min_group_size=2, n_resamples=100)
    low, high = found.gap("demographic_parity_gap").unknown_range
    assert found.notes[-1] == (
        f"The group of 7 people (30.4%) is not known. Depending on their groups, the gap of "
        f"selection rates lies between {low:.4f} and {high:.4f}."
    )


@pytest.mark.parametrize("word", ["?", "-", "n/a", "none"])
def test_a_placeholder_is_no_reference_unless_it_is_named(word: str) -> None:
    rng = np.random.default_rng(0)
    group = rng.choice([word, "a", "b"], 900, p=[0.6, 0.2, 0.2])
    score = np.where(group == word, 0.9, rng.random(900))
    found = audit(score, sensitive_features=group, n_resamples=100)
    assert found.reference in ("a", "b")
    assert found.ratio_reference in ("a", "b")
    assert found.impact[0].most_selected in ("a", "b")
    assert any("reads like a missing value" in note for note in found.notes)
    named = audit(score, sensitive_features=group, n_resamples=100, reference=word)
    assert (named.reference, named.ratio_reference) == (word, word)


def test_a_combination_with_a_placeholder_is_no_reference() -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"sex": rng.choice(["f", "m"], 900), "race": ["?"] * 700 + ["x"] * 200})
    found = audit(rng.random(900), sensitive_features=people, n_resamples=100)
    assert found.reference in ("f, x", "m, x")
