import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from paper.illustrations import GaussianMap
from paper.rivals import TransportRepairTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from synthetic import people

from fairmatch import Coupling, OptimalTransportMatcher
from fairmatch.datasets import load_german, paper_split
from fairmatch.exceptions import CouplingError, GroupError, InputError

PLAIN = {"encoder": None, "tolerance": 1e-9}


def repaired(X, group, **settings):
    return TransportRepairTransformer(**PLAIN | settings).fit_transform(X, sensitive_features=group)


def two_groups(n0, n1, seed=0, width=3):
    generator = np.random.default_rng(seed)
    X = np.vstack([generator.normal(size=(n0, width)), generator.normal(1.0, 2.0, (n1, width))])
    order = generator.permutation(n0 + n1)
    return X[order], np.repeat([0, 1], [n0, n1])[order]


class TestInTheSample:
    @settings(max_examples=12)
    @given(st.integers(1, 30), st.integers(0, 100))
    def test_equally_large_groups_coincide_point_by_point(self, n, seed):
        X, group = two_groups(n, n, seed)
        moved = repaired(X, group)
        pairs = OptimalTransportMatcher().match(X, group)
        assert_allclose(moved[pairs.source_index], moved[pairs.target_index], atol=1e-9)
        one, other = (np.sort(moved[group == code], axis=0) for code in (0, 1))
        assert_allclose(one, other, atol=1e-9)

    @settings(max_examples=12)
    @given(st.integers(1, 25), st.integers(1, 25), st.integers(0, 100))
    def test_means_agree_whatever_the_sizes(self, n0, n1, seed):
        X, group = two_groups(n0, n1, seed)
        moved = repaired(X, group)
        assert_allclose(moved[group == 0].mean(axis=0), moved[group == 1].mean(axis=0), atol=1e-9)

    def test_means_agree_by_weight(self):
        X, group = two_groups(9, 14)
        weight = np.random.default_rng(1).random(23)
        weight[3] = 0.0
        model = TransportRepairTransformer(**PLAIN)
        moved = model.fit_transform(X, sensitive_features=group, sample_weight=weight)
        means = [np.average(moved[group == s], axis=0, weights=weight[group == s]) for s in (0, 1)]
        # A row without weight is matched with nobody, moves as its neighbour does, counts for 0.
        assert_allclose(*means, atol=1e-9)

    @settings(max_examples=12)
    @given(st.floats(0.0, 1.0))
    def test_partial_repair_is_part_of_the_way(self, amount):
        X, group = two_groups(7, 12)
        way = repaired(X, group) - X
        assert_allclose(repaired(X, group, amount=amount), X + amount * way, atol=1e-12)

    def test_nothing_is_repaired_at_0(self):
        X, group = two_groups(7, 12)
        assert_array_equal(repaired(X, group, amount=0.0), X)

    def test_by_hand_with_split_mass(self):
        # Each of the three rows of group 1 is a third; the row at 0 is matched with all of the
        # row at 3 and half of that at 6, in all a mean of 4.
        moved = repaired([[0.0], [10.0], [3.0], [6.0], [9.0]], [0, 0, 1, 1, 1]).ravel()
        expected = [0.4 * 0 + 0.6 * 4, 0.4 * 10 + 0.6 * 8, 0.6 * 3, 0.6 * 6 + 0.4 * 5, 0.6 * 9 + 4]
        assert_allclose(moved, expected)

    def test_rows_that_are_alike_move_alike(self):
        X, group = [[0.0], [0.0], [1.0], [3.0]], [0, 0, 1, 1]
        assert_allclose(repaired(X, group).ravel(), [1.0, 1.0, 0.5, 1.5])


class TestNormalDistributions:
    def test_the_repair_is_the_closed_form(self):
        # The second sample is the optimal image of the first, so its moments are too, and the
        # closed form for the samples' moments is the optimal map of the samples themselves.
        generator = np.random.default_rng(0)
        X0 = generator.normal(size=(60, 3))
        root = generator.normal(size=(3, 3))
        X1 = X0 @ (root @ root.T + 0.1 * np.eye(3)) + [1.0, -2.0, 0.5]
        X, group = np.vstack([X0, X1]), np.repeat([0, 1], 60)
        T = GaussianMap.between(X0.mean(0), np.cov(X0.T), X1.mean(0), np.cov(X1.T))
        moved = repaired(X, group)
        assert_allclose(moved[group == 0], (X0 + T(X0)) / 2.0, atol=1e-8)
        assert_allclose(moved[group == 1], (X0 + T(X0)) / 2.0, atol=1e-8)

    def test_a_large_sample_comes_close_with_unequal_sizes(self):
        X, group = two_groups(1500, 500, width=1)
        T = GaussianMap.between([0.0], [[1.0]], [1.0], [[4.0]])
        new = np.linspace(-1.0, 1.0, 9)[:, None]
        model = TransportRepairTransformer(n_neighbors=15, **PLAIN).fit(X, sensitive_features=group)
        moved = model.transform(new, sensitive_features=np.zeros(9))
        assert_allclose(moved, 0.75 * new + 0.25 * T(new), atol=0.08)


class TestNewRows:
    def test_a_row_moves_as_the_nearest_of_its_group(self):
        X, group = [[0.0], [10.0], [2.0], [16.0]], [0, 0, 1, 1]
        model = TransportRepairTransformer(**PLAIN).fit(X, sensitive_features=group)
        moved = model.transform([[1.0], [9.0], [1.0], [15.5]], sensitive_features=[0, 0, 1, 1])
        assert_allclose(moved.ravel(), [2.0, 12.0, 0.0, 12.5])

    def test_several_neighbours_are_averaged(self):
        X, group = [[0.0], [10.0], [2.0], [16.0]], [0, 0, 1, 1]
        model = TransportRepairTransformer(n_neighbors=5, **PLAIN).fit(X, sensitive_features=group)
        assert_allclose(model.transform([[4.0]], sensitive_features=[0]).ravel(), [6.0])

    def test_training_rows_are_their_own_neighbours(self):
        X, group = two_groups(20, 31)
        model = TransportRepairTransformer(**PLAIN).fit(X, sensitive_features=group)
        alone = [model.transform(X[i : i + 1], sensitive_features=group[i : i + 1]) for i in (3, 8)]
        assert_allclose(np.vstack(alone), repaired(X, group)[[3, 8]])

    def test_training_rows_are_their_own_neighbours_far_from_the_origin_too(self):
        X, group = two_groups(40, 40)
        X = np.column_stack([X, np.zeros((80, 16))])  # so wide that distances are taken by squares
        moved = repaired(X, group)
        assert_allclose(repaired(X + 1e6, group) - 1e6, moved, atol=1e-6)
        far = X * 1e-3 + 1e6
        assert_allclose(repaired(far, group) - far, (moved - X) * 1e-3, atol=1e-6)

    def test_a_forest_finds_traces_of_the_group_where_mass_is_split_between_categories(self):
        split = paper_split(load_german(), 0)
        model = TransportRepairTransformer(**PLAIN)
        model.fit(split.X_train, sensitive_features=split.group_train)
        moved = model.transform(split.X_test, sensitive_features=split.group_test)
        first = np.arange(200) < 100
        probe = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
        probe.fit(moved[first], split.group_test[first])
        found = probe.predict_proba(moved[~first])[:, 1]
        assert roc_auc_score(split.group_test[~first], found) > 0.65

    def test_a_probe_finds_less_of_the_group(self):
        X, _, group = people(1200, share=0.3)
        train, test = np.arange(1200) < 800, np.arange(1200) >= 800
        model = TransportRepairTransformer().fit(X[train], sensitive_features=group[train])

        def auc(rows):
            probe = RandomForestClassifier(60, min_samples_leaf=5, random_state=0)
            probe.fit(rows[train], group[train])
            return roc_auc_score(group[test], probe.predict_proba(rows[test])[:, 1])

        before, after = auc(X), auc(model.transform(X, sensitive_features=group))
        assert before > 0.75
        assert after < before - 0.1


class TestInputs:
    @pytest.mark.parametrize("amount", [-0.1, 1.5, float("nan")])
    def test_amounts_outside_the_range(self, amount):
        X, group = two_groups(4, 4)
        with pytest.raises(InputError, match=r"amount must be a number in \[0, 1\]"):
            repaired(X, group, amount=amount)

    def test_labels_of_another_length(self):
        X, group = two_groups(4, 4)
        with pytest.raises(InputError, match="y has 3 samples"):
            TransportRepairTransformer(**PLAIN).fit(X, [0, 1, 0], sensitive_features=group)

    def test_neighbours(self):
        X, group = two_groups(4, 4)
        with pytest.raises(InputError, match="n_neighbors"):
            repaired(X, group, n_neighbors=0)

    def test_groups(self):
        X, group = two_groups(4, 4)
        with pytest.raises(InputError, match=r"fit needs.*sensitive_features=.*sensitive_column="):
            TransportRepairTransformer().fit(X)
        model = TransportRepairTransformer().fit(X, sensitive_features=group)
        with pytest.raises(InputError, match=r"transform needs the group of every row") as caught:
            model.transform(X)
        assert "sensitive_at_prediction" not in str(caught.value)
        with pytest.raises(GroupError, match="holds 7"):
            model.transform(X[:1], sensitive_features=[7])
        with pytest.raises(InputError, match="2 rows, X has 1"):
            model.transform(X[:1], sensitive_features=[0, 1])

    def test_a_ready_coupling_in_either_direction(self):
        X, group = two_groups(5, 8)
        pairs = OptimalTransportMatcher().match(X, group)
        model = TransportRepairTransformer(**PLAIN)
        for coupling in (pairs, pairs.inverse):
            moved = model.fit_transform(X, sensitive_features=group, coupling=coupling)
            assert_allclose(moved, repaired(X, group), atol=1e-12)
        other = Coupling([0], [1], [1.0], n_rows=2, groups=(0, 1))
        with pytest.raises(CouplingError, match="2 rows"):
            model.fit(X, sensitive_features=group, coupling=other)
