import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose, assert_array_equal
from paper.rivals import (
    LAFTRTransformer,
    RepresentationClassifier,
    SIPMTransformer,
    TransportRepairTransformer,
)
from paper.rivals.representations import AdversaryCritic, SigmoidCritic, standardized
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from synthetic import made, people

from fairmatch import OptimalTransportMatcher, fairness_path
from fairmatch.exceptions import (
    CouplingError,
    GroupError,
    InputError,
    LabelError,
)
from fairmatch.learning.choice import fit_models
from fairmatch.people.encoding import TableEncoder

FAST = {"hidden_sizes": (8,), "n_components": 3, "epochs": 2, "batch_size": 32, "random_state": 0}
HEAD = {"hidden_sizes": (8,), "epochs": 2, "batch_size": 32, "random_state": 0}
LEARNED = [LAFTRTransformer, SIPMTransformer]
ALL = [*LEARNED, TransportRepairTransformer]
LOG3 = float(np.log(3.0))
X, Y, GROUP = people()


def path_of(estimator, weights, X, y, group):
    """Fit one transformer per weight."""
    reader = estimator._reader()
    return fit_models(estimator, reader, reader.read(X, y, group, None), weights)


def small(family, **settings):
    return made(family, **(FAST if family in LEARNED else {}) | settings)


def fitted(family, **settings):
    return small(family, **settings).fit(X, Y, sensitive_features=GROUP)


def moved(model):
    return model.transform(X, sensitive_features=GROUP)


class TestCritics:
    def test_the_sigmoid_metric_by_hand(self):
        # sigma(0) = 1/2 and sigma(log 3) = 3/4; sigma(-log 3) = 1/4.
        critic = SigmoidCritic(torch.zeros(1), 1, 1)
        latents = torch.tensor([[[0.0], [0.0], [LOG3], [LOG3]]])
        unit, opposite, half = ([[[t], [0.0]]] for t in (1.0, -1.0, 0.0))
        for discriminator, expected in ((unit, 0.25), (opposite, 0.25), (half, 0.0)):
            gap = critic.gaps(latents, 2, torch.tensor(discriminator))
            assert gap.item() == pytest.approx(expected, abs=1e-6)
        shifted = critic.gaps(latents, 1, torch.tensor([[[1.0], [0.0]]]))
        assert shifted.item() == pytest.approx((0.5 + 0.75 + 0.75) / 3 - 0.5, abs=1e-6)

    def test_the_encoder_pays_for_the_best_discriminator(self):
        critic = SigmoidCritic(torch.tensor([2.0]), 1, 3, speed=1.0)
        with torch.no_grad():
            critic.discriminators.copy_(torch.tensor([[[0.1, 1.0, -0.5], [0.0, 0.0, 0.0]]]))
        latents = torch.tensor([[[0.0], [LOG3]]], requires_grad=True)
        price = critic(latents, 1)
        assert price.item() == pytest.approx(2.0 * 0.25, abs=1e-6)
        price.sum().backward()
        # The slope of sigma is p (1 - p): 1/4 at 0, 3/16 at log 3.
        assert_allclose(latents.grad.ravel(), [-2.0 / 4, 2.0 * 3 / 16], atol=1e-6)
        # Every discriminator climbs, the others too.
        assert (critic.discriminators.grad[0, 0] * torch.tensor([-1, -1, 1]) > 0).all()

    @pytest.mark.parametrize("kind", [AdversaryCritic, SigmoidCritic])
    def test_a_critic_finds_the_distance_of_two_groups(self, kind):
        generator = torch.Generator().manual_seed(0)
        critic = kind(torch.zeros(1), 2, slope_weight=0.0, speed=1.0, generator=generator)
        latents = torch.randn((1, 2000, 2), generator=generator)
        latents[:, 1000:, 0] += 3.0
        rate = 0.1 if kind is SigmoidCritic else 0.01
        optimizer = torch.optim.Adam(critic.parameters(), lr=rate)
        for _ in range(100):
            optimizer.zero_grad()
            critic(latents, 1000).sum().backward()
            optimizer.step()
        critic.fairness_weights[:] = 1.0
        # Total variation of N(0, 1) and N(3, 1), which no critic can exceed but by chance.
        assert critic(latents, 1000).item() == pytest.approx(0.866, abs=0.08)

    def test_the_adversary_succeeds_by_one_minus_the_l1_loss(self):
        generator = torch.Generator().manual_seed(0)
        critic = AdversaryCritic(torch.ones(1), 2, (4,), speed=5.0, generator=generator)
        latents = torch.randn((1, 7, 2), generator=generator)
        (layers,) = critic.network.stack.networks()
        (weight, bias), (last, offset) = ((5.0 * w, 5.0 * b) for w, b in layers)
        guess = torch.sigmoid(torch.relu(latents[0] @ weight.T + bias) @ last.T + offset)[:, 0]
        loss = guess[:3].abs().mean() + (guess[3:] - 1.0).abs().mean()
        assert critic(latents, 3).item() == pytest.approx(1.0 - loss.item(), abs=1e-6)

    def test_the_slope_that_the_adversary_pays_for_is_its_slope(self):
        generator = torch.Generator().manual_seed(0)
        latents = torch.randn((1, 6, 3), generator=generator)
        losses = []
        for slope_weight in (0.0, 2.0):
            seeded = torch.Generator().manual_seed(1)
            critic = AdversaryCritic(torch.zeros(1), 3, (5, 4), slope_weight, 1.0, seeded)
            critic(latents, 3).sum().backward()
            losses.append([p.grad.clone() for p in critic.parameters()])
        inputs = latents[0].clone().requires_grad_()
        logits = critic.network.stack(inputs).sum()
        (slope,) = torch.autograd.grad(logits, inputs, create_graph=True)
        slope.square().sum(dim=1).mean().backward()
        # What is left of the bias gradients by autograd is zero, and may be none at all.
        for plain, paying, values in zip(*losses, critic.parameters(), strict=True):
            total = values.grad - paying  # accumulated on top of the second backward pass
            assert_allclose(paying - plain, total, atol=1e-6)

    def test_standardized(self):
        latents = torch.randn((2, 50, 3), generator=torch.Generator().manual_seed(0)) * 7 + 2
        weight = torch.linspace(0.1, 1.0, 50)
        values = standardized(latents, weight).numpy()
        assert_allclose(np.average(values, axis=1, weights=weight), 0.0, atol=1e-5)
        assert_allclose(np.average(values**2, axis=1, weights=weight), 1.0, atol=1e-4)


@pytest.fixture(scope="module", params=LEARNED)
def learned(request):
    """Representations of three weights, and rows that were held out."""
    X, y, group = people(1600, share=0.4)
    settings = {"n_components": 3, "hidden_sizes": (32,), "epochs": 20, "batch_size": 256}
    estimator = made(request.param, learning_rate=0.005, decay=0.88, random_state=0, **settings)
    weights = [0.0, 0.3, 3.0] if request.param is LAFTRTransformer else [0.0, 0.05, 0.4]
    path = path_of(estimator, weights, X[:1100], y[:1100], group[:1100])
    return path, X, y, group


class TestWhatIsLearned:
    def test_a_fresh_probe_finds_less_and_less_of_the_group(self, learned):
        path, X, _, group = learned
        auc = []
        for model in path:
            Z = model.transform(X, sensitive_features=group)
            probe = RandomForestClassifier(60, min_samples_leaf=10, random_state=0)
            probe.fit(Z[:1100], group[:1100])
            auc.append(roc_auc_score(group[1100:], probe.predict_proba(Z[1100:])[:, 1]))
        assert auc[0] > 0.75
        assert auc[0] > auc[1] > auc[2]
        assert auc[2] < 0.66

    def test_rows_are_rebuilt_better_than_by_their_mean(self, learned):
        path, X, _, group = learned
        for model in path:
            encoded = model.encoder_.transform(X)
            trivial = ((encoded[1100:] - encoded[:1100].mean(axis=0)) ** 2).mean()
            Z = model.transform(X[1100:], sensitive_features=group[1100:])
            latents = torch.as_tensor(np.column_stack([Z, group[1100:]]), dtype=torch.float32)
            rebuilt = model.decoder_.outputs(latents)[0].detach().numpy()
            assert ((rebuilt - encoded[1100:]) ** 2).mean() < 0.8 * trivial

    def test_labels_can_still_be_predicted(self, learned):
        path, X, y, group = learned
        Z = path[-1].transform(X, sensitive_features=group)
        head = LogisticRegression().fit(Z[:1100], y[:1100])
        assert head.score(Z[1100:], y[1100:]) > max(y.mean(), 1 - y.mean()) + 0.08

    def test_numbers_are_standardized(self, learned):
        path, X, _, group = learned
        Z = path[1].transform(X[:1100], sensitive_features=group[:1100])
        assert_allclose(Z.mean(axis=0), 0.0, atol=1e-4)
        assert_allclose(Z.std(axis=0), 1.0, atol=1e-3)


@pytest.mark.parametrize("family", LEARNED)
class TestOnePass:
    def test_a_path_is_what_fits_alone_give(self, family):
        path = path_of(small(family), [0.0, 2.0], X, Y, GROUP)
        for weight, model in zip([0.0, 2.0], path, strict=True):
            alone = fitted(family, fairness_weight=weight)
            assert_allclose(moved(model), moved(alone), atol=1e-4)
            assert model.fairness_weight == weight

    def test_same_seed_same_bits(self, family):
        before = torch.get_rng_state()
        assert_array_equal(moved(fitted(family)), moved(fitted(family)))
        assert not np.array_equal(moved(fitted(family)), moved(fitted(family, random_state=1)))
        assert torch.equal(torch.get_rng_state(), before)

    def test_without_groups_at_prediction(self, family):
        model = fitted(family, sensitive_at_prediction=False)
        assert model.transform(X).shape == (120, 3)
        with pytest.raises(InputError, match=r"needs.*sensitive_at_prediction=False"):
            fitted(family).transform(X)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"fairness_weight": -1.0}, "fairness_weight must be a number in"),
            ({"n_components": 0}, "n_components"),
            ({"task_weight": -1.0}, "task_weight"),
            ({"reconstruction_weight": float("inf")}, "reconstruction_weight"),
            ({"hidden_sizes": "wide"}, "list of widths"),
            ({"epochs": 0}, "epochs"),
            ({"decay": 0.0}, "decay"),
            ({"learning_rate": 1e30}, "diverged"),
            ({"random_state": -1}, "random_state"),
            ({"encoder": "wavelets"}, "encoder"),
        ],
    )
    def test_settings_that_make_no_sense(self, family, settings, message):
        with pytest.raises(InputError, match=message):
            fitted(family, **settings)

    def test_inputs_that_make_no_sense(self, family):
        with pytest.raises(LabelError, match="requires y"):
            small(family).fit(X, sensitive_features=GROUP)
        pairs = OptimalTransportMatcher().match(X, GROUP)
        with pytest.raises(CouplingError, match="does not match people"):
            small(family).fit(X, Y, sensitive_features=GROUP, coupling=pairs)

    def test_terms_can_be_left_out(self, family):
        for settings in ({"task_weight": 0.0}, {"reconstruction_weight": 0.0}):
            assert np.isfinite(moved(fitted(family, **settings))).all()

    def test_names(self, family):
        names = fitted(family).get_feature_names_out()
        assert names.tolist() == [f"{family.__name__.lower()}{i}" for i in range(3)]


def table():
    frame = pd.DataFrame(X, columns=["wage", "debt", "age", "visits"])
    frame["job"] = np.where(X[:, 2] > 0.3, "cook", "nurse")
    frame["sex"] = np.where(GROUP == 1, "m", "f")
    return frame


@pytest.mark.parametrize("family", ALL)
class TestInScikitLearn:
    def test_parameters_clone_and_pickle(self, family):
        parameters = set(inspect.signature(family).parameters)
        model = small(family, sensitive_column="sex")
        assert set(model.get_params(deep=False)) == set(vars(model)) == parameters
        assert clone(model).sensitive_column == "sex"
        model = fitted(family)
        assert_array_equal(moved(pickle.loads(pickle.dumps(model))), moved(model))

    @pytest.mark.parametrize(
        "kind", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"]
    )
    def test_the_groups_travel_in_the_table(self, family, kind):
        model = make_pipeline(small(family, sensitive_column="sex"), LogisticRegression())
        model.fit(kind(table()), Y)
        alone = small(family).fit(table().drop(columns="sex"), Y, sensitive_features=table().sex)
        Z = alone.transform(table().drop(columns="sex"), sensitive_features=table().sex)
        expected = LogisticRegression().fit(Z, Y).predict_proba(Z)
        assert_allclose(model.predict_proba(kind(table())), expected, atol=1e-9)
        assert np.isfinite(cross_validate(model, table(), Y, cv=2)["test_score"]).all()

    def test_routing_reaches_fit_and_transform(self, family):
        with sklearn.config_context(enable_metadata_routing=True):
            model = make_pipeline(small(family), LogisticRegression())
            model.fit(X, Y, sensitive_features=GROUP)
            scores = model.predict_proba(X, sensitive_features=GROUP)
        Z = moved(fitted(family))
        assert_allclose(scores, LogisticRegression().fit(Z, Y).predict_proba(Z), atol=1e-9)

    def test_not_fitted(self, family):
        with pytest.raises(NotFittedError):
            family().transform(X, sensitive_features=GROUP)

    def test_missing_values(self, family):
        frame = table()
        frame.loc[3, "age"] = np.nan
        with pytest.raises(InputError, match="'age'"):
            small(family, sensitive_column="sex").fit(frame, Y)
        encoder = TableEncoder(missing="encode")
        model = small(family, sensitive_column="sex", encoder=encoder).fit(frame, Y)
        assert np.isfinite(model.transform(frame)).all()


class TestClassifierOnIt:
    @pytest.mark.parametrize("family", ALL)
    def test_a_path_is_what_fits_alone_give(self, family):
        estimator = made(RepresentationClassifier, small(family), **HEAD)
        given = {"sensitive_features": GROUP}
        path = fairness_path(X, Y, fairness_weights=[0.0, 0.8], estimator=estimator, **given)
        for weight, model in zip([0.0, 0.8], path.models, strict=True):
            alone = clone(model).fit(X, Y, **given)
            assert alone.fairness_weight == model.fairness_weight == weight
            scores = model.predict_proba(X, **given)
            assert_allclose(alone.predict_proba(X, **given), scores, atol=1e-4)
        curve = path.curve(X, Y, **given)
        assert curve.fairness_weight.tolist() == [0.0, 0.8]
        assert curve.accuracy[0] == path.models[0].score(X, Y, **given)

    @pytest.mark.parametrize("family", ALL)
    def test_it_has_a_grid_of_its_own(self, family):
        representation = small(family, **{"epochs": 1} if family in LEARNED else {})
        estimator = made(RepresentationClassifier, representation, **HEAD | {"epochs": 1})
        path = fairness_path(X, Y, sensitive_features=GROUP, estimator=estimator)
        assert tuple(path.weights) == family().default_weights
        assert 10 <= len(path) <= 12
        assert (np.diff(path.weights) > 0).all()

    def test_the_head_sees_the_representation_alone(self):
        model = made(RepresentationClassifier, small(LAFTRTransformer), **HEAD)
        model.fit(X, Y, sensitive_features=GROUP)
        assert model.network_.weights[0].shape[-1] == 3
        Z = torch.as_tensor(model.representation_.transform(X, sensitive_features=GROUP)).float()
        expected = torch.sigmoid(model.network_(Z)[0]).detach().numpy()
        scores = model.predict_proba(X, sensitive_features=GROUP)[:, 1]
        assert_allclose(scores, expected, atol=1e-6)

    def test_a_seed_of_the_classifier_is_enough(self):
        given = {"sensitive_features": GROUP}
        unseeded = small(LAFTRTransformer, random_state=None)
        one, two = (
            made(RepresentationClassifier, unseeded, **HEAD).fit(X, Y, **given) for _ in "12"
        )
        assert_array_equal(one.predict_proba(X, **given), two.predict_proba(X, **given))
        assert one.representation.random_state is None

    def test_full_repair_by_default_and_a_ready_coupling(self):
        given = {"sensitive_features": GROUP}
        coupling = OptimalTransportMatcher(tolerance=1e-3).match(
            TableEncoder().fit_transform(X), GROUP
        )
        model = made(RepresentationClassifier, **HEAD).fit(X, Y, coupling=coupling, **given)
        same = made(RepresentationClassifier, TransportRepairTransformer(1.0), **HEAD).fit(
            X, Y, **given
        )
        assert_allclose(model.predict_proba(X, **given), same.predict_proba(X, **given), atol=1e-6)

    def test_grid_search_over_the_weight(self):
        model = made(
            RepresentationClassifier, TransportRepairTransformer(sensitive_column="sex"), **HEAD
        )
        search = GridSearchCV(model, {"representation__amount": [0.0, 1.0]}, cv=2).fit(table(), Y)
        assert search.predict(table()).shape == (120,)

    def test_other_transformers_are_refused(self):
        with pytest.raises(InputError, match="one of the rivals' transformers"):
            made(RepresentationClassifier, TableEncoder()).fit(X, Y, sensitive_features=GROUP)

    def test_groups_given_nowhere(self):
        model = made(RepresentationClassifier, **HEAD).fit(X, Y, sensitive_features=GROUP)
        with pytest.raises(InputError, match=r"sensitive_column=\.$"):
            model.predict(X)

    def test_a_path_needs_a_classifier(self):
        with pytest.raises(InputError, match="must be one of fairmatch's classifiers"):
            fairness_path(X, Y, sensitive_features=GROUP, estimator=LAFTRTransformer())


@pytest.mark.parametrize("family", [LAFTRTransformer, SIPMTransformer])
class TestRebuilding:
    def test_rows_without_weight_teach_nothing(self, family):
        weight = np.ones(len(Y))
        weight[0] = 0.0
        other = np.array(X, dtype=np.float64)
        other[0] = 50.0
        given = {"sensitive_features": GROUP, "sample_weight": weight}
        plain, changed = (
            made(family, epochs=1, encoder=None, random_state=0).fit(rows, Y, **given)
            for rows in (np.asarray(X, dtype=np.float64), other)
        )
        seen = np.asarray(X, dtype=np.float64)[1:]
        assert_allclose(
            plain.transform(seen, sensitive_features=GROUP[1:]),
            changed.transform(seen, sensitive_features=GROUP[1:]),
        )


@pytest.mark.parametrize("transformer", [LAFTRTransformer, SIPMTransformer])
def test_a_classifier_on_it_says_that_it_compares_two_groups(transformer):
    generator = np.random.default_rng(0)
    X, y, group = generator.normal(size=(90, 2)), np.arange(90) % 2, np.arange(90) % 3
    model = made(RepresentationClassifier, transformer(encoder=None))
    with pytest.raises(GroupError, match=f"{transformer.__name__} compares two groups"):
        model.fit(X, y, sensitive_features=group)
