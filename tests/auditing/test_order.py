"""Audits of the same people in another order."""

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit
from fairmatch.auditing.people import content_order
from fairmatch.people.columns import read_columns

QUICK = {"n_resamples": 100, "n_subsets": 50}


def people(n=400, seed=0):
    """Whole numbers, as of COMPAS, so that many distances tie."""
    generator = np.random.default_rng(seed)
    group = generator.choice(["a", "b"], n)
    return pd.DataFrame(
        {
            "age": generator.integers(18, 30, n),
            "priors": generator.poisson(1 + (group == "b")),
            "degree": generator.choice(["F", "M", None], n, p=[0.5, 0.4, 0.1]),
            "group": group,
            "score": generator.integers(1, 11, n) / 10,
            "label": generator.integers(2, size=n),
            "weight": generator.integers(1, 4, n),
            "id": [f"P{k}" for k in range(n)],
        }
    )


def audited(table, **more):
    return audit(
        table.score,
        sensitive_features=table.group,
        X=table[["age", "priors", "degree"]],
        y_true=table.label,
        ids=table.id,
        **QUICK,
        **more,
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"n_sample": 90},
        {"weight_kind": "counts"},
        {"weight_kind": "survey"},
    ],
    ids=lambda given: " ".join(map(str, given.values())) or "everybody",
)
def test_the_order_of_the_rows_makes_no_difference(given):
    table = people()
    found = []
    for seed in range(3):
        turned = table.sample(frac=1.0, random_state=seed)
        weights = {"sample_weight": turned.weight} if "weight_kind" in given else {}
        found.append(audited(turned, **weights, **given))
    first, *others = found
    for other in others:
        for ours, theirs in zip(first.gaps, other.gaps, strict=True):
            facts = [(gap.value, gap.low, gap.high) for gap in (ours, theirs)]
            assert facts[0] == pytest.approx(facts[1], abs=1e-9), ours.name
        for ours, theirs in zip(
            first.matching.matched_gaps, other.matching.matched_gaps, strict=True
        ):
            assert ours.flips.first_only == pytest.approx(theirs.flips.first_only), ours.matching
        subsets = [
            [(s.description, s.n_rows) for s in one.subsets.subsets] for one in (first, other)
        ]
        assert subsets[0] == subsets[1]


def test_everybody_listed_is_who_the_table_says():
    table = people().sample(frac=1.0, random_state=3).reset_index(drop=True)
    listed = audited(table, n_sample=60).individuals
    assert len(set(listed.ids)) == len(listed.ids)
    for k, row in enumerate(listed.rows):
        person = table.iloc[row]
        assert listed.ids[k] == person.id
        assert listed.scores[k] == person.score
        assert listed.columns["age"][k] == person.age


def test_rows_that_differ_in_anything_have_their_place():
    table = people(300)
    X = table[["age", "priors", "degree"]]
    order = content_order(read_columns(X), [table.label.to_numpy()], [table.score.to_numpy()])
    assert sorted(order) == list(range(300))
    turned = np.random.default_rng(0).permutation(300)
    other = table.iloc[turned]
    again = content_order(
        read_columns(other[X.columns]), [other.label.to_numpy()], [other.score.to_numpy()]
    )
    kept = [*X.columns, "label", "score"]
    one, two = (frame.iloc[at][kept] for frame, at in ((table, order), (other, again)))
    pd.testing.assert_frame_equal(one.reset_index(drop=True), two.reset_index(drop=True))
