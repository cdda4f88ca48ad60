import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from paper.rivals import (
    AdversarialClassifier,
    GapRegularizedClassifier,
    ReductionClassifier,
    UnconstrainedClassifier,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from synthetic import NETWORKS, PENALIZED, QUICK, made, people, rows_of
from torch import nn

from fairmatch import FTMClassifier, OptimalTransportMatcher, fairness_path
from fairmatch.datasets import load_german
from fairmatch.exceptions import (
    ColumnError,
    CouplingError,
    GroupError,
    InputError,
    LabelError,
    TrainingInterruptedWarning,
)
from fairmatch.learning.networks import Batches, coupled_batches
from fairmatch.measures import gap_table, matched_parity_gap
from fairmatch.people.encoding import TableEncoder

X, Y, GROUP = people()


def fit(family=FTMClassifier, X=X, y=Y, group=GROUP, *, sample_weight=None, **settings):
    model = made(family, **{**QUICK, **settings})
    return model.fit(X, y, sensitive_features=group, sample_weight=sample_weight)


def scores(model, X=X, group=GROUP):
    return model.predict_proba(X, sensitive_features=group)[:, 1]


class TestWhatMustHold:
    @pytest.mark.parametrize("family", PENALIZED)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_weight_zero_is_the_unconstrained_network_to_the_bit(self, family, weighted):
        weight = 1.0 + np.arange(len(Y)) % 3 if weighted else None
        model = fit(family, fairness_weight=0.0, sample_weight=weight)
        assert_array_equal(
            scores(model), scores(fit(UnconstrainedClassifier, sample_weight=weight))
        )

    @pytest.mark.parametrize("family", NETWORKS)
    def test_same_seed_same_bits_and_the_global_generators_are_left_alone(self, family):
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
        first, second, other = (scores(fit(family, random_state=seed)) for seed in (0, 0, 1))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
        assert_array_equal(first, second)
        assert (first != other).any()

    def test_batches_matched_on_another_core_give_the_same_bits(self):
        matcher = OptimalTransportMatcher(batch_size=16)
        first, second = (scores(fit(transport=matcher)) for _ in range(2))
        assert_array_equal(first, second)

    def test_reduction_is_reg_with_another_weight(self):
        shares = np.bincount(GROUP) / len(GROUP)
        reduction = fit(ReductionClassifier, fairness_weight=10.0)
        reg = fit(GapRegularizedClassifier, fairness_weight=10.0 * (shares**2).sum())
        np.testing.assert_allclose(scores(reduction), scores(reg), atol=1e-5)

    @pytest.mark.parametrize("transport", ["marginal", "joint"])
    def test_the_matched_gap_falls_to_zero_as_the_weight_grows(self, transport):
        X, y, group = people(500)
        matcher = OptimalTransportMatcher(100.0 if transport == "joint" else 0.0)
        coupling = matcher.match(TableEncoder().fit_transform(X), group, y)
        self.check_the_path(X, y, group, coupling, people(2000, seed=1))

    def test_the_matched_gap_falls_to_zero_on_german_credit(self):
        german = load_german()
        group = np.asarray(german.sensitive_features)
        encoded = TableEncoder().fit_transform(german.X)
        train, test = np.arange(0, 800), np.arange(800, 1000)
        coupling = OptimalTransportMatcher().match(encoded[train], group[train])
        y = np.asarray(german.y)
        rest = encoded[test], y[test], group[test]
        self.check_the_path(encoded[train], y[train], group[train], coupling, rest)

    def check_the_path(self, X, y, group, coupling, test):
        settings = {"hidden_sizes": (16,), "epochs": 20, "learning_rate": 0.01, "batch_size": 128}
        path = fairness_path(
            X,
            y,
            sensitive_features=group,
            fairness_weights=[0.0, 0.5, 20.0],
            estimator=made(FTMClassifier, **{**QUICK, **settings}),
            coupling=coupling,
        )
        matched = [
            matched_parity_gap(
                None, scores(model, X, group), sensitive_features=group, coupling=coupling
            )
            for model in path.models
        ]
        assert matched[0] > 2.0 * matched[2]
        assert matched == sorted(matched, reverse=True)
        assert matched[2] < 0.02
        ahead, _, behind = (
            gap_table(test[1], scores(model, test[0], test[2]), sensitive_features=test[2])
            for model in path.models
        )
        assert behind["mean_parity_gap"] < 0.02
        assert behind["mean_parity_gap"] <= ahead["mean_parity_gap"]


def test_the_adversary_works():
    """A probe that is trained anew on held-out rows finds less of the group as the weight grows."""
    X, y, group = people(1000)
    path = fairness_path(
        X,
        y,
        sensitive_features=group,
        fairness_weights=[0.0, 1.0, 5.0, 50.0],
        estimator=made(
            AdversarialClassifier,
            **{"hidden_sizes": (16,), "epochs": 50, "batch_size": 128, "learning_rate": 2e-3},
            decay=0.95,
            random_state=0,
        ),
    )
    (X1, _, group1), (X2, y2, group2) = people(2000, seed=1), people(2000, seed=2)
    for probe in (
        LogisticRegression(),
        RandomForestClassifier(30, min_samples_leaf=20, random_state=0),
    ):
        found = []
        for model in path.models:
            probe.fit(scores(model, X1, group1)[:, None], group1)
            guess = probe.predict_proba(scores(model, X2, group2)[:, None])[:, 1]
            found.append(roc_auc_score(group2, guess))
        assert found[0] > 0.7
        assert found[0] > found[1] + 0.05
        assert found[1] > found[2] + 0.03
        assert found[3] < 0.6
    # The scores are still about something.
    assert path.models[-1].score(X2, y2, sensitive_features=group2) > 0.7


class TestSampleWeights:
    def test_weight_two_is_the_row_twice(self):
        weight = 1.0 + np.arange(len(Y)) % 2
        at = np.repeat(np.arange(len(Y)), weight.astype(int))
        one = fit(UnconstrainedClassifier, sample_weight=weight)
        two = fit(UnconstrainedClassifier, X[at], Y[at], GROUP[at])
        assert_array_equal(scores(one), scores(two))

    @pytest.mark.parametrize("family", NETWORKS)
    def test_the_unit_of_the_weights_does_not_matter(self, family):
        weight = 1.0 + np.arange(len(Y)) % 3
        one, two = (scores(fit(family, sample_weight=w)) for w in (weight, 4.0 * weight))
        assert_array_equal(one, two)

    def test_rows_without_weight_are_not_learned_from(self):
        weight = (np.arange(len(Y)) < 100).astype(float)
        other = np.where(weight > 0, Y, 1 - Y)
        for family in NETWORKS:
            one, two = (scores(fit(family, y=y, sample_weight=weight)) for y in (Y, other))
            assert_array_equal(one, two)

    @pytest.mark.parametrize("family", [FTMClassifier, UnconstrainedClassifier])
    @pytest.mark.parametrize("weight", [np.zeros(len(Y)), 1.0 - GROUP], ids=["none", "one group"])
    def test_a_group_without_weight(self, family, weight):
        with pytest.raises(GroupError, match="sum to zero"):
            fit(family, sample_weight=weight)


class TestCoupling:
    def test_a_ready_coupling_is_what_the_matcher_would_give(self):
        encoded = TableEncoder().fit_transform(X)
        coupling = OptimalTransportMatcher(tolerance=1e-3).match(encoded, GROUP)
        model = made(FTMClassifier, **QUICK).fit(X, Y, sensitive_features=GROUP, coupling=coupling)
        assert_array_equal(scores(model), scores(fit()))

    def test_a_matcher_of_ones_own(self):
        class RowOrder:
            def match(self, X, sensitive_features, y=None, *, sample_weight=None):
                self.seen = X, y
                matcher = OptimalTransportMatcher()
                return matcher.match(np.arange(len(X))[:, None], sensitive_features)

        model = fit(transport=RowOrder())
        assert (scores(model) != scores(fit())).any()

    @pytest.mark.parametrize("family", [f for f in NETWORKS if f is not FTMClassifier])
    def test_rivals_take_none(self, family):
        coupling = OptimalTransportMatcher().match(X, GROUP)
        with pytest.raises(CouplingError, match="does not match people"):
            made(family, **QUICK).fit(X, Y, sensitive_features=GROUP, coupling=coupling)

    def test_of_another_table(self):
        coupling = OptimalTransportMatcher().match(X[:50], GROUP[:50])
        with pytest.raises(CouplingError, match="50 rows"):
            made(FTMClassifier, **QUICK).fit(X, Y, sensitive_features=GROUP, coupling=coupling)


class TestSamples:
    """People of large tables are matched on a sample; the loss sees everybody."""

    def test_pairs_are_of_the_sample_and_rows_of_the_loss_of_the_whole_table(self):
        rows = rows_of(X, Y, GROUP)
        coupling = made(FTMClassifier, match_rows=15, **QUICK)._penalty(rows, None).coupling
        sample = np.union1d(coupling.source_index, coupling.target_index)
        assert len(sample) == 30
        batches = coupled_batches(coupling, rows, 32, np.random.default_rng(0))
        compared, learned = set(), set()
        for batch in batches.epoch(20):
            compared |= set(batch.rows[: 2 * batch.n_pairs].tolist())
            learned |= set(batch.rows[batch.weight > 0.0].tolist())
        assert compared == set(sample.tolist())
        assert learned == set(range(len(Y)))

    def test_everybody_is_matched_in_small_tables(self):
        assert FTMClassifier().match_rows == "auto"
        assert_array_equal(scores(fit()), scores(fit(match_rows=None)))
        assert not np.array_equal(scores(fit()), scores(fit(match_rows=15)))
        with pytest.raises(InputError, match="match_rows"):
            fit(match_rows=0)


class TestGroups:
    def test_in_the_table_or_beside_it_is_the_same(self):
        frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=GROUP)
        model = made(FTMClassifier, sensitive_column="sex", **QUICK).fit(frame, Y)
        beside = fit(X=frame.drop(columns="sex"))
        assert_array_equal(
            model.predict_proba(frame),
            beside.predict_proba(frame[list("abcd")], sensitive_features=GROUP),
        )

    def test_not_needed_at_prediction(self):
        frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=GROUP)
        model = made(FTMClassifier, sensitive_column="sex", sensitive_at_prediction=False, **QUICK)
        model.fit(frame, Y)
        with_it = model.predict_proba(frame)
        assert_array_equal(model.predict_proba(frame[list("abcd")]), with_it)
        assert_array_equal(model.predict_proba(frame.assign(sex=1 - GROUP)), with_it)

    def test_a_near_name_is_suggested(self):
        frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=GROUP)
        with pytest.raises(ColumnError, match=r"no column 'Sex'\. Did you mean 'sex'"):
            made(FTMClassifier, sensitive_column="Sex", **QUICK).fit(frame, Y)

    def test_given_twice(self):
        model = made(FTMClassifier, sensitive_column=0, **QUICK)
        with pytest.raises(InputError, match="Pass only one of the two"):
            model.fit(X, Y, sensitive_features=GROUP)

    def test_unknown_at_prediction(self):
        with pytest.raises(GroupError, match=r"holds 7; the model knows the groups 0 and 1"):
            fit().predict(X, sensitive_features=np.where(GROUP == 1, 7, 0))

    def test_one_person_can_be_scored(self):
        # Matrix products of different sizes differ in the last bits.
        assert scores(fit(), X[:1], GROUP[:1]) == pytest.approx(scores(fit())[0], rel=1e-6)


class TestModule:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layers = nn.Sequential(
                nn.Linear(5, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1)
            )

        def forward(self, rows):
            return self.layers(rows)

    def test_it_is_copied_trained_and_reproducible(self):
        net = self.Net()
        start = {name: values.clone() for name, values in net.state_dict().items()}
        before = torch.get_rng_state()
        first, second = fit(hidden_sizes=net), fit(hidden_sizes=net)
        assert torch.equal(torch.get_rng_state(), before)
        assert_array_equal(scores(first), scores(first))  # no dropout in prediction
        assert_array_equal(scores(first), scores(second))
        assert all(torch.equal(values, start[name]) for name, values in net.state_dict().items())
        assert net.training
        assert first.estimator.hidden_sizes is net
        moved = first.network_.members[0].state_dict()
        assert not any(torch.equal(values, start[name]) for name, values in moved.items())

    def test_a_path_of_copies(self):
        path = fairness_path(
            X,
            Y,
            sensitive_features=GROUP,
            fairness_weights=[0.1, 10.0],
            estimator=made(FTMClassifier, **{**QUICK, "hidden_sizes": self.Net()}),
        )
        assert (scores(path.models[0]) != scores(path.models[1])).any()

    def test_without_dropout_it_is_the_built_in_network(self):
        built_in = fit(UnconstrainedClassifier, hidden_sizes=(8,), epochs=1)

        net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
        start = fit(
            UnconstrainedClassifier, hidden_sizes=(8,), epochs=1, learning_rate=1e-30
        ).network_
        for layer, weight, bias in zip(net[::2], start.weights, start.biases, strict=True):
            layer.weight.data, layer.bias.data = weight[0].detach(), bias[0].detach()
        own = fit(UnconstrainedClassifier, hidden_sizes=net, epochs=1)
        np.testing.assert_allclose(scores(own), scores(built_in), atol=1e-5)


class TestInterrupted:
    @pytest.fixture(autouse=True)
    def ctrl_c_in_the_second_epoch(self, monkeypatch):
        whole = Batches.epoch
        epochs = []

        def epoch(self, n_steps):
            epochs.append(n_steps)
            for step, batch in enumerate(whole(self, n_steps)):
                if len(epochs) == 2 and step == 3:
                    raise KeyboardInterrupt
                yield batch

        monkeypatch.setattr(Batches, "epoch", epoch)

    def test_it_ends_the_program(self):
        model = made(UnconstrainedClassifier, **QUICK)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, sensitive_features=GROUP)
        assert not hasattr(model, "network_")

    def test_unless_what_was_learned_is_to_be_kept(self):
        with pytest.warns(TrainingInterruptedWarning, match="after 1 of 2 epochs"):
            model = fit(UnconstrainedClassifier, keep_on_interrupt=True)
        assert model.n_epochs_ == 1
        assert np.isfinite(scores(model)).all()


@pytest.mark.parametrize("verbose", [0, 1])
def test_no_terminal_no_words(verbose, capfd):
    fit(verbose=verbose)
    assert capfd.readouterr() == ("", "")


class TestBadInput:
    @pytest.mark.parametrize(
        ("family", "settings"),
        [
            *((family, {}) for family in NETWORKS),
            (FTMClassifier, {"transport": OptimalTransportMatcher(batch_size=64)}),
        ],
    )
    def test_a_group_smaller_than_the_batch(self, family, settings):
        group = (np.arange(len(Y)) < 3).astype(int)
        model = fit(family, group=group, **settings)
        assert np.isfinite(scores(model, group=group)).all()

    @pytest.mark.parametrize(
        ("family", "settings"),
        [*((family, {}) for family in NETWORKS), (FTMClassifier, {"transport": "joint"})],
    )
    def test_one_class_in_a_group(self, family, settings):
        model = fit(family, y=np.where(GROUP == 0, 0, Y), **settings)
        assert np.isfinite(scores(model)).all()

    def test_constant_columns_change_nothing_but_the_width(self):
        constant = np.column_stack([X, np.full(len(X), 3.0)])
        assert np.isfinite(scores(fit(X=constant), constant)).all()

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (np.zeros(120), r"two classes, but it holds only one class: 0"),
            (np.linspace(0, 1, 120), "Unknown label type: continuous"),
            (np.where(Y == 1, np.nan, 0.0), "NaN"),
            (np.array(["a", 1] * 60, dtype=object), "cannot be used as labels"),
            (np.column_stack([Y, Y]), "1d array"),
            (None, "y"),
        ],
    )
    def test_labels(self, y, message):
        with pytest.raises(LabelError, match=message):
            fit(y=y)

    @pytest.mark.parametrize(
        ("group", "message"),
        [
            (np.where(np.arange(120) == 0, 7, GROUP), "fewer than 2 rows: 7: 1"),
            (np.zeros(120), "one group only"),
            (np.where(GROUP == 1, np.nan, 0.0), "missing or unknown values"),
        ],
    )
    def test_groups(self, group, message):
        with pytest.raises(GroupError, match=message):
            fit(group=group)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    @pytest.mark.parametrize("encoder", ["table", None])
    def test_features_that_are_no_numbers(self, value, encoder):
        broken = X.copy()
        broken[3, 1] = value
        with pytest.raises(InputError, match=r"NaN|inf"):
            fit(X=broken, encoder=encoder)
        with pytest.raises(InputError, match=r"NaN|inf"):
            scores(fit(encoder=encoder), broken)

    @pytest.mark.parametrize("short", ["X", "y", "group", "sample_weight"])
    def test_lengths(self, short):
        given = {"X": X, "y": Y, "group": GROUP, "sample_weight": np.ones(len(Y))}
        given[short] = given[short][:-1]
        with pytest.raises(InputError, match="119"):
            fit(**given)

    def test_lengths_at_prediction(self):
        model = fit()
        with pytest.raises(InputError, match="119"):
            model.predict(X, sensitive_features=GROUP[:-1])
        with pytest.raises(InputError, match="y has 1 rows"):
            model.score(X, [1], sensitive_features=GROUP)

    @pytest.mark.parametrize("encoder", ["table", None])
    def test_columns_at_prediction(self, encoder):
        frame = pd.DataFrame(X, columns=list("abcd"))
        model = fit(X=frame, encoder=encoder)
        with pytest.raises(ValueError, match="4 features"):
            scores(fit(encoder=encoder), X[:, :3])
        with pytest.raises(ValueError, match="feature names should match"):
            scores(model, frame[list("dcba")])

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"fairness_weight": -1.0}, "fairness_weight must be a number in"),
            ({"epochs": 0}, "epochs must be a whole number"),
            ({"batch_size": 2.5}, "batch_size must be a whole number"),
            ({"decay": 0.0}, "decay must be a number in"),
            ({"learning_rate": 0.0}, "learning_rate must be a number in"),
            ({"learning_rate": 1e38}, "Training diverged"),
            ({"encoder": "onehot"}, "encoder must be 'table', None or a transformer, got"),
            ({"hidden_sizes": 5}, "hidden_sizes must be a list of widths"),
            ({"hidden_sizes": (8, 0)}, "hidden_sizes must be a list of widths"),
            ({"hidden_sizes": "mlp"}, "hidden_sizes must be a list of widths"),
            ({"transport": "optimal"}, "transport must be"),
        ],
        ids=str,
    )
    def test_settings(self, settings, message):
        with pytest.raises(InputError, match=message):
            fit(**settings)

    def test_a_fit_that_fails_leaves_the_old_model(self):
        model = fit()
        before = scores(model)
        with pytest.raises(LabelError):
            model.fit(X, np.zeros(120), sensitive_features=GROUP)
        assert_array_equal(scores(model), before)
