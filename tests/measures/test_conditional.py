"""Gaps within strata, against pandas, statsmodels, shuffled groups and the unconditional gaps."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as over
from hypothesis import settings, strategies
from statsmodels.stats.contingency_tables import StratifiedTable

from fairmatch.exceptions import ColumnError, GroupError, InputError
from fairmatch.measures import conditional_gaps, demographic_parity_gap, gap_table, gaps_by_pair
from fairmatch.measures.contingency import mantel_haenszel
from fairmatch.people.encoding import Table
from fairmatch.people.strata import read_given


def table(seed, n_rows=600, n_groups=2):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "group": np.array(list("abc"))[random.integers(n_groups, size=n_rows)],
            "title": np.array(["clerk", "cook", "head"])[random.integers(3, size=n_rows)],
            "grade": random.integers(1, 4, size=n_rows),
            "score": random.random(n_rows).round(2),
            "weight": random.random(n_rows) + 0.1,
            "label": random.integers(2, size=n_rows),
        }
    )
    return frame


@settings(max_examples=20, deadline=None)
@over(seed=strategies.integers(0, 2**32), weighted=strategies.booleans())
def test_one_stratum_is_the_unconditional_gap_to_the_bit(seed, weighted):
    frame = table(seed, n_groups=3)
    known = {
        "sensitive_features": frame.group,
        "sample_weight": frame.weight if weighted else None,
    }
    plain = gap_table(frame.label, frame.score, **known)
    assert gap_table(frame.label, frame.score, **known, given=["x"] * len(frame)) == plain
    pairs = gaps_by_pair(frame.label, frame.score, **known)
    assert gaps_by_pair(frame.label, frame.score, **known, given=["x"] * len(frame)) == pairs


@settings(max_examples=15, deadline=None)
@over(seed=strategies.integers(0, 2**32))
def test_gaps_are_those_that_pandas_finds(seed):
    frame = table(seed).assign(hit=lambda f: f.score >= 0.5)
    (found,) = conditional_gaps(
        None, frame.score, sensitive_features=frame.group, given=frame[["title", "grade"]]
    )
    rates = frame.pivot_table(index=["title", "grade"], columns="group", values="hit")
    sizes = frame.pivot_table(index=["title", "grade"], columns="group", values="hit",
                              aggfunc="count")  # fmt: skip
    share = sizes.sum(axis=1) / len(frame)
    gap = (rates[found.group] - rates[found.reference]).astype(float)
    assert found.value == pytest.approx((share * gap).sum())
    assert found.absolute == pytest.approx((share * gap.abs()).sum())
    assert demographic_parity_gap(
        None, frame.score, sensitive_features=frame.group, given=frame[["title", "grade"]]
    ) == pytest.approx(found.absolute)
    assert len(found.strata) == 9
    assert found.overlap == (1.0, 1.0)


@settings(max_examples=15, deadline=None)
@over(seed=strategies.integers(0, 2**32))
def test_mantel_haenszel_weights_and_odds_are_those_of_statsmodels(seed):
    frame = table(seed).assign(hit=lambda f: f.score >= 0.5)
    (found,) = conditional_gaps(
        None, frame.score, sensitive_features=frame.group, given=frame.title,
        weights="mantel_haenszel", reference="b",
    )  # fmt: skip
    tables = []
    for _, own in frame.groupby("title"):
        counts = pd.crosstab(own.group, own.hit)
        tables.append(counts.reindex(index=["a", "b"], columns=[True, False]).to_numpy())
    oracle = StratifiedTable([counts.T for counts in tables])
    assert mantel_haenszel(tables).value == pytest.approx(oracle.oddsratio_pooled)
    weights = np.array([t.sum(axis=1).prod() / t.sum() for t in tables])
    gaps = np.array([t[0, 0] / t[0].sum() - t[1, 0] / t[1].sum() for t in tables])
    assert found.value == pytest.approx((weights * gaps).sum() / weights.sum())


@pytest.mark.parametrize(("kind", "measure"), [
    ("probability", "demographic_parity_gap"), ("number", "mean_parity_gap"),
])  # fmt: skip
def test_chance_is_what_shuffled_groups_give(kind, measure):
    frame = table(3, n_rows=200)
    random = np.random.default_rng(0)
    asked = {"given": frame.title, "kind": kind, "measure": measure, "reference": "a"}
    (found,) = conditional_gaps(None, frame.score, sensitive_features=frame.group, **asked)
    shuffled = []
    for _ in range(400):
        groups = frame.groupby("title").group.transform(lambda own: random.permutation(own))
        (own,) = conditional_gaps(None, frame.score, sensitive_features=groups, **asked)
        shuffled.append(own.absolute)
    error = np.std(shuffled) / np.sqrt(len(shuffled))
    assert found.chance == pytest.approx(np.mean(shuffled), abs=4 * error)
    assert found.excess == found.absolute - found.chance


def test_simpson_table_of_identical_people():
    job = ["cook"] * 80 + ["guide"] * 20 + ["cook"] * 20 + ["guide"] * 80
    hired = [own == "guide" for own in job]
    (found,) = conditional_gaps(
        None, hired, sensitive_features=["f"] * 100 + ["m"] * 100, given=job, reference="m"
    )
    assert (found.value, found.absolute, found.chance) == (0.0, 0.0, 0.0)
    assert found.marginal == pytest.approx(-0.6)
    assert not found.reverses


@pytest.mark.parametrize("n_groups", [2, 3])
def test_disparity_compares_a_group_with_everybody_else(n_groups):
    frame = table(8, n_groups=n_groups).assign(hit=lambda f: f.score >= 0.5)
    frame.loc[frame.title == "cook", "hit"] = True  # nobody of a stratum is rejected
    for found in conditional_gaps(
        None, frame.hit, sensitive_features=frame.group, given=frame.title, reference="b"
    ):
        parts = []
        for _, own in frame.groupby("title"):
            among = [own[own.hit == hit].group == found.group for hit in (False, True)]
            rejected, accepted = (rows.mean() if len(rows) else 0.0 for rows in among)
            parts.append(len(own) * (rejected - accepted))
        assert found.disparity == pytest.approx(sum(parts) / len(frame))


def test_disparity_of_a_table_by_hand():
    # Of 30 rejected people 20 are women, of 20 accepted 10 are; then 5 of 10, and 10 of 40.
    cells = [("x", "f", 0, 20), ("x", "m", 0, 10), ("x", "f", 1, 10), ("x", "m", 1, 10),
             ("y", "f", 0, 5), ("y", "m", 0, 5), ("y", "f", 1, 10), ("y", "m", 1, 30)]  # fmt: skip
    job, sex, hired = zip(*(cell[:3] for cell in cells for _ in range(cell[3])), strict=True)
    (found,) = conditional_gaps(None, hired, sensitive_features=sex, given=job, reference="m")
    assert found.disparity == pytest.approx((50 * (2 / 3 - 1 / 2) + 50 * (1 / 2 - 1 / 4)) / 100)
    (none,) = conditional_gaps(None, [1] * 100, sensitive_features=sex, given=job, reference="m")
    assert none.disparity is None  # as there is nobody to reject


def test_strata_without_both_groups_are_counted_and_shown():
    (found,) = conditional_gaps(
        None, [1, 0, 1, 1, 0], sensitive_features=list("aabbb"), given=list("xyxxz"), reference="b"
    )
    assert found.overlap == (0.5, 2 / 3)
    assert [stratum.weight for stratum in found.strata] == [1.0, 0.0, 0.0]
    assert found.strata[1].difference is None
    with pytest.raises(GroupError, match="No stratum holds people of both"):
        demographic_parity_gap(None, [1, 0], sensitive_features=["a", "b"], given=["x", "y"])


def test_numbers_are_cut_into_bands_that_are_reported():
    hours = np.arange(100.0)
    found = read_given(hours, n_rows=100)
    assert found.labels[0] == "factor 1 up to 19"
    assert found.labels[-1] == "factor 1 above 79"
    assert np.bincount(found.values).tolist() == [20] * 5
    assert len(read_given([1, 2, 3] * 5, n_rows=15).labels) == 3
    missing = read_given(np.append(hours, np.nan), n_rows=101)
    assert missing.labels[-1] == "factor 1 missing"
    assert missing.values[-1] == 5


def test_columns_are_named_or_passed():
    frame = table(1)
    named = read_given(["title", "grade"], n_rows=600, table=Table(frame))
    passed = read_given(frame[["title", "grade"]], n_rows=600)
    assert named.labels == passed.labels
    assert (named.values == passed.values).all()
    assert named.labels[0] == "title clerk, grade 1"
    with pytest.raises(ColumnError, match="Did you mean 'title'"):
        read_given("titel", n_rows=600, table=Table(frame))
    with pytest.raises(InputError, match="there is no table"):
        read_given("title", n_rows=600)
    with pytest.raises(InputError, match="difference of rates or means"):
        conditional_gaps(None, frame.score, sensitive_features=frame.group, given=frame.title,
                         measure="ks_parity_gap")  # fmt: skip
