"""Every gap against somebody else's code, and what must not change it."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    equalized_odds_difference,
    false_positive_rate_difference,
    true_positive_rate_difference,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_tables import Table, tables
from scipy.stats import ks_2samp, spearmanr, wasserstein_distance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, make_scorer
from sklearn.model_selection import cross_validate

from fairmatch import Coupling, fair_matching, measures
from fairmatch.exceptions import CouplingError
from fairmatch.measures import (
    consistency,
    demographic_parity_gap,
    equalized_odds_gap,
    false_positive_gap,
    gap_table,
    ks_parity_gap,
    matched_parity_gap,
    mean_parity_gap,
    random_subset_gaps,
    rank_agreement,
    subset_parity_gap,
    total_variation_parity_gap,
    true_positive_gap,
    undesirable_flips,
    wasserstein_parity_gap,
)
from fairmatch.measures.registry import applicable
from fairmatch.people.outcome import PROBABILITY

KNOWN = applicable(PROBABILITY)
GAPS = [getattr(measures, name) for name, own in KNOWN.items() if not own.needs_coupling]
close = pytest.approx


def has_all_labels(table: Table) -> bool:
    return all(((table.groups == g) & (table.labels == y)).any() for g in (0, 1) for y in (0, 1))


@given(tables())
def test_wasserstein_is_scipys(table):
    (first, u), (second, v) = table.of(0), table.of(1)
    expected = wasserstein_distance(first, second, u, v)
    assert wasserstein_parity_gap(None, table.scores, **table.given) == close(expected, abs=1e-12)


@given(tables(weighted=False))
def test_kolmogorov_smirnov_is_scipys(table):
    expected = ks_2samp(table.of(0)[0], table.of(1)[0], method="exact").statistic
    assert ks_parity_gap(None, table.scores, **table.given) == close(expected, abs=1e-12)


@given(tables())
def test_kolmogorov_smirnov_is_the_worst_threshold(table):
    worst = max(
        demographic_parity_gap(None, table.scores, **table.given, threshold=threshold)
        for threshold in table.scores
    )
    assert ks_parity_gap(None, table.scores, **table.given) == close(worst, abs=1e-12)


@given(tables())
def test_total_variation_is_half_the_difference_of_mass_functions(table):
    shares = [pd.Series(table.shares(g)).groupby(table.of(g)[0]).sum() for g in (0, 1)]
    expected = shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2
    found = total_variation_parity_gap(None, table.scores, **table.given)
    assert found == close(expected, abs=1e-12)


@given(tables(), st.integers(1, 12))
def test_binned_total_variation_is_exact_for_binned_scores(table, bins):
    binned = np.minimum(np.floor(table.scores * bins), bins - 1) / bins
    # Off the edges, where a score belongs to one bin whatever the rounding.
    assume((np.abs(table.scores * bins - np.rint(table.scores * bins)) > 1e-9).all())
    expected = total_variation_parity_gap(None, binned, **table.given)
    found = total_variation_parity_gap(None, table.scores, **table.given, bins=bins)
    assert found == close(expected, abs=1e-12)


@given(tables())
def test_the_gaps_are_ordered(table):
    mean, wasserstein, ks, variation, decisions = (
        gap(None, table.scores, **table.given)
        for gap in (
            mean_parity_gap,
            wasserstein_parity_gap,
            ks_parity_gap,
            total_variation_parity_gap,
            demographic_parity_gap,
        )
    )
    assert mean <= wasserstein + 1e-12
    assert wasserstein <= ks + 1e-12
    assert max(ks, decisions) <= variation + 1e-12
    assert decisions <= ks + 1e-12
    assert variation <= 1.0 + 1e-12


@settings(max_examples=20)  # fairlearn takes 60 ms for a table
@given(tables())
def test_rates_are_fairlearns(table):
    decisions = (table.scores >= 0.5).astype(int)
    assume(has_all_labels(table))
    for mine, theirs in (
        (demographic_parity_gap, demographic_parity_difference),
        (true_positive_gap, true_positive_rate_difference),
        (false_positive_gap, false_positive_rate_difference),
        (equalized_odds_gap, lambda *a, **k: equalized_odds_difference(*a, **k, agg="mean")),
    ):
        expected = theirs(table.labels, decisions, **table.given)
        assert mine(table.labels, table.scores, **table.given) == close(expected, abs=1e-12)
        assert mine(table.labels, decisions, **table.given) == close(expected, abs=1e-12)


@given(tables(), st.floats(0, 1))
def test_error_rates_are_those_of_the_confusion_matrix(table, threshold):
    assume(has_all_labels(table))
    rates = []
    for group in (0, 1):
        rows = table.groups == group
        weights = None if table.weights is None else table.weights[rows]
        decided = table.scores[rows] >= threshold
        matrix = confusion_matrix(table.labels[rows], decided, labels=[0, 1], sample_weight=weights)
        rates.append(matrix[:, 1] / matrix.sum(axis=1))
    fpr, tpr = np.abs(rates[0] - rates[1])
    columns = table.given | {"threshold": threshold}
    assert true_positive_gap(table.labels, table.scores, **columns) == close(tpr, abs=1e-12)
    assert false_positive_gap(table.labels, table.scores, **columns) == close(fpr, abs=1e-12)


@given(tables())
def test_smooth_rates_are_mean_scores(table):
    assume(has_all_labels(table))
    columns = table.given
    for gap, label in ((true_positive_gap, 1), (false_positive_gap, 0)):
        expected = subset_parity_gap(None, table.scores, **columns, subset=table.labels == label)
        assert gap(table.labels, table.scores, **columns, threshold=None) == expected
    mean = mean_parity_gap(None, table.scores, **columns)
    assert demographic_parity_gap(None, table.scores, **columns, threshold=None) == mean


@given(tables(), st.integers(0, 2**32))
def test_subset_gap_is_the_mean_gap_of_the_rows_taken(table, seed):
    subset = np.random.default_rng(seed).uniform(size=len(table)) < 0.7
    assume(set(table.groups[subset]) == {0, 1})
    part = table.take(np.flatnonzero(subset))
    expected = mean_parity_gap(None, part.scores, **part.given)
    found = subset_parity_gap(None, table.scores, **table.given, subset=subset)
    assert found == close(expected, abs=1e-12)


@given(tables(), st.integers(0, 2**32))
def test_random_subsets_are_the_half_spaces_of_the_same_seed(table, seed):
    gaps = random_subset_gaps(
        None, table.scores, **table.given, X=table.X, n_subsets=5, random_state=seed
    )
    directions = np.random.default_rng(seed).uniform(-1, 1, size=(5, table.X.shape[1]))
    for gap, direction in zip(gaps, directions, strict=True):
        subset = table.X @ direction >= 0.0
        if set(table.groups[subset]) == {0, 1}:
            expected = subset_parity_gap(None, table.scores, **table.given, subset=subset)
            assert gap == close(expected, abs=1e-12)
        else:
            assert np.isnan(gap)


def test_random_subsets_in_blocks(monkeypatch):
    columns = {"sensitive_features": [0, 0, 1, 1], "X": np.eye(4), "n_subsets": 50}
    gaps = random_subset_gaps(None, [0.1, 0.7, 0.4, 0.3], **columns, random_state=0)
    monkeypatch.setattr("fairmatch.measures.changes._BLOCK_CELLS", 12)
    blocks = random_subset_gaps(None, [0.1, 0.7, 0.4, 0.3], **columns, random_state=0)
    np.testing.assert_allclose(gaps, blocks)
    assert 0 < np.isnan(gaps).sum() < 50
    assert np.nanmax(gaps) == close(0.4)  # the second row against the last


def test_half_spaces_include_their_edge():
    columns = {"sensitive_features": [0, 1], "X": np.zeros((2, 3)), "n_subsets": 4}
    assert random_subset_gaps(None, [0.25, 0.75], **columns).tolist() == [0.5] * 4


@given(tables(weighted=False), st.integers(0, 2**32))
def test_rank_agreement_is_spearmans(table, seed):
    other = np.random.default_rng(seed).integers(0, 5, len(table)) / 4
    agreement = rank_agreement(table.scores, other, sensitive_features=table.groups)
    for group in (0, 1):
        rows = table.groups == group
        if min(len(set(table.scores[rows])), len(set(other[rows]))) == 1:
            assert np.isnan(agreement[group])
        else:
            expected = spearmanr(table.scores[rows], other[rows]).statistic
            assert agreement[group] == close(expected, abs=1e-12)


@given(tables(weighted=False), st.integers(0, 1), st.integers(0, 2**32))
def test_flips_are_confusion_matrices(table, privileged, seed):
    model = np.random.default_rng(seed).uniform(size=len(table))
    flips = undesirable_flips(
        table.scores, model, sensitive_features=table.groups, privileged=privileged
    )
    for group in (0, 1):
        rows = table.groups == group
        expected = confusion_matrix(model[rows] >= 0.5, table.scores[rows] >= 0.5, labels=[0, 1])
        np.testing.assert_array_equal(flips.tables[group], expected)
        wrong = expected[1, 0] if group == privileged else expected[0, 1]
        assert flips.undesirable[group] == wrong
    assert flips.total == sum(flips.undesirable.values())


def test_consistency_by_hand():
    assert consistency([0.5, 0.4, 1, 0], [0.9, 0.3, 0, 1]) == 0.5
    assert consistency([0.5, 0.4], [0.9, 0.3], threshold=0.6) == 0.5


def test_decisions_include_the_threshold():
    columns = {"sensitive_features": [0, 1]}
    assert demographic_parity_gap(None, [0.5, 0.49], **columns) == 1.0
    assert demographic_parity_gap(None, [0.5, 0.49], **columns, threshold=0.49) == 0.0


@given(tables())
def test_the_table_of_gaps_is_the_gaps(table):
    assume(has_all_labels(table))
    coupling = fair_matching(table.scores, table.groups, sample_weight=table.weights)
    found = gap_table(table.labels, table.scores, **table.given, coupling=coupling, bins=None)
    assert list(found) == list(KNOWN)
    for name, measure in KNOWN.items():
        columns = table.given
        if measure.needs_coupling:
            columns = {"sensitive_features": table.groups, "coupling": coupling}
        assert found[name] == getattr(measures, name)(table.labels, table.scores, **columns)
    without = gap_table(None, table.scores, **table.given)
    assert list(without) == [
        name for name, m in KNOWN.items() if not (m.needs_labels or m.needs_coupling)
    ]


def test_measures_read_the_table_their_coupling_was_made_for():
    scores, groups = [0.0, 1.0, 0.5, 0.75], ["a", "a", "b", "b"]
    coupling = Coupling([0, 1], [3, 2], [0.5, 0.5], n_rows=4, groups=("a", "b"))
    columns = {"coupling": coupling}
    assert matched_parity_gap(None, scores, sensitive_features=groups, **columns) == 0.625
    for call in (matched_parity_gap, gap_table):
        with pytest.raises(CouplingError, match="wrong group"):
            call(None, scores, sensitive_features=["b", "b", "a", "a"], **columns)
        with pytest.raises(CouplingError, match="4 rows"):
            call(None, [*scores, 0.1], sensitive_features=[*groups, "a"], **columns)


# What must not change a gap.


def changed(table: Table, how: str, generator: np.random.Generator) -> Table:
    n_rows, weights = len(table), table.weights
    if how == "rows in another order":
        return table.take(generator.permutation(n_rows))
    if how == "every row twice":
        return table.take(np.tile(np.arange(n_rows), 2))
    if how == "groups swapped":
        return Table(table.scores, 1 - table.groups, table.labels, table.X, weights)
    if how == "groups renamed":
        names = np.array(["women", "men"])[table.groups]
        return Table(table.scores, names, table.labels, table.X, weights)
    weights = np.ones(n_rows) if weights is None else weights
    if how == "weights of one group scaled":
        scaled = np.where(table.groups == 0, 3.7 * weights, weights)
        return Table(table.scores, table.groups, table.labels, table.X, scaled)
    if how == "rows without weight added":
        more = table.take(np.append(np.arange(n_rows), generator.integers(0, n_rows, 3)))
        more.scores[-3:], more.weights = generator.uniform(size=3), np.append(weights, np.zeros(3))
        return more
    assert how == "weights split over copies"
    part = generator.uniform(0.1, 0.9, n_rows)
    twice = table.take(np.tile(np.arange(n_rows), 2))
    twice.weights = np.concatenate([part * weights, (1.0 - part) * weights])
    return twice


CHANGES = [
    "rows in another order",
    "every row twice",
    "groups swapped",
    "groups renamed",
    "weights of one group scaled",
    "rows without weight added",
    "weights split over copies",
]


@pytest.mark.parametrize("how", CHANGES)
@given(tables(), st.integers(0, 2**32))
def test_what_must_not_change_a_gap(how, table, seed):
    assume(has_all_labels(table))
    other = changed(table, how, np.random.default_rng(seed))
    for bins in (None, 7):
        before = gap_table(table.labels, table.scores, **table.given, bins=bins)
        after = gap_table(other.labels, other.scores, **other.given, bins=bins)
        assert after == close(before, abs=1e-12)


@given(tables(weighted=False), st.integers(0, 2**32))
def test_a_weight_is_a_number_of_copies(table, seed):
    assume(has_all_labels(table))
    copies = np.random.default_rng(seed).integers(1, 4, len(table))
    many = table.take(np.repeat(np.arange(len(table)), copies))
    table.weights = copies
    before = gap_table(table.labels, table.scores, **table.given)
    assert gap_table(many.labels, many.scores, **many.given) == close(before, abs=1e-12)


def test_whole_weights_are_summed_without_rounding():
    rng = np.random.default_rng(0)
    scores, groups = rng.uniform(size=2000).round(2), rng.integers(0, 2, 2000)
    copies = rng.integers(1, 4, 2000)
    many = np.repeat(np.arange(2000), copies)
    for gap in (ks_parity_gap, total_variation_parity_gap):
        counted = gap(None, scores, sensitive_features=groups, sample_weight=copies)
        assert counted == gap(None, scores[many], sensitive_features=groups[many])


@pytest.mark.parametrize("gap", GAPS)
def test_equal_groups_have_no_gap_at_all(gap):
    scores = np.random.default_rng(0).uniform(size=997)
    columns = {"sensitive_features": np.repeat([0, 1], 997)}
    assert gap(np.tile(np.arange(997) % 2, 2), np.tile(scores, 2), **columns) == 0.0


# Other people's containers and tools.


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize(
    "column", [list, np.array, pd.Series, pl.Series, pa.array], ids=lambda c: c.__module__
)
def test_columns_of_every_library(gap, column):
    scores, labels, groups = [0.9, 0.2, 0.6, 0.7, 0.1], [1, 0, 1, 0, 1], list("ffmmm")
    expected = gap(labels, scores, sensitive_features=groups)
    assert gap(column(labels), column(scores), sensitive_features=column(groups)) == expected


@pytest.mark.parametrize("labels", [[True, False, True, False], ["yes", "no", "yes", "no"]])
def test_labels_of_every_kind(labels):
    columns = {"sensitive_features": [0, 0, 1, 1], "pos_label": labels[0]}
    assert equalized_odds_gap(labels, [0.9, 0.2, 0.6, 0.7], **columns) == 0.5


@pytest.fixture
def noisy():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 3))
    groups = np.where(generator.uniform(size=200) < 0.4, "f", "m")
    y = (X[:, 0] + (groups == "m") + generator.normal(size=200) > 0.5).astype(int)
    return X, y, groups


@pytest.mark.parametrize("gap", GAPS)
def test_in_scikit_learns_cross_validation(noisy, gap):
    X, y, groups = noisy
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(gap, response_method="predict_proba", greater_is_better=False)
        scorer = scorer.set_score_request(sensitive_features=True)
        folds = cross_validate(
            LogisticRegression(), X, y, scoring=scorer, params={"sensitive_features": groups},
            return_estimator=True, return_indices=True, cv=3, error_score="raise",
        )  # fmt: skip
    for score, model, rows in zip(
        folds["test_score"], folds["estimator"], folds["indices"]["test"], strict=True
    ):
        scores = model.predict_proba(X[rows])[:, 1]
        assert score == close(-gap(y[rows], scores, sensitive_features=groups[rows]))


@pytest.mark.parametrize("gap", GAPS)
def test_in_fairlearns_metric_frame(noisy, gap):
    X, y, groups = noisy
    scores, region = 1 / (1 + np.exp(-X[:, 0])), np.where(X[:, 1] > 0, "north", "south")
    frame = MetricFrame(
        metrics={"gap": gap}, y_true=y, y_pred=scores, sensitive_features=region,
        sample_params={"gap": {"sensitive_features": groups}},
    )  # fmt: skip
    assert frame.overall["gap"] == close(gap(y, scores, sensitive_features=groups))
    for name in ("north", "south"):
        rows = region == name
        expected = gap(y[rows], scores[rows], sensitive_features=groups[rows])
        assert frame.by_group.loc[name, "gap"] == close(expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [2, 3, 10, 20])
def test_binned_total_variation_of_mirrored_scores(bins, weighted):
    """Scores on the borders of bins, such as .3 and .7, are counted alike from both sides."""
    generator = np.random.default_rng(bins)
    for _ in range(20):
        scores = generator.integers(0, 21, 40) / 20
        settings = {"sensitive_features": ["a", "b"] * 20, "bins": bins}
        if weighted:
            settings["sample_weight"] = generator.integers(1, 4, 40)
        one, other = (total_variation_parity_gap(None, s, **settings) for s in (scores, 1 - scores))
        assert one == pytest.approx(other, abs=1e-12)
