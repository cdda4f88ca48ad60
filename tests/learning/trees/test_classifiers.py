import hashlib
import json
import os
import pickle
import sys
from inspect import signature

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from damage import edit
from numpy.testing import assert_allclose, assert_array_equal
from paper.rivals import GapRegularizedBoostingClassifier
from paper.rivals.penalties import SquaredMeanGap
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from synthetic import made, people, rows_of

import fairmatch
from fairmatch import FTMBoostingClassifier, OptimalTransportMatcher, fairness_path, load
from fairmatch.cli.main import main
from fairmatch.datasets import load_adult, load_bank, load_dutch, load_german
from fairmatch.exceptions import (
    ColumnError,
    CouplingError,
    GroupError,
    InputError,
    MissingExtraError,
    ModelFileError,
    SolverError,
)
from fairmatch.learning.penalties import MatchedGap
from fairmatch.learning.reading import stratified_split
from fairmatch.learning.saving import _digest
from fairmatch.learning.trees import BoostingObjective, unseen_scores
from fairmatch.measures import mean_parity_gap
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.groups import CRITERIA, read_groups

QUICK = {"n_estimators": 10, "num_leaves": 6, "random_state": 0}
# The paper's map and objective, which the theorems are about.
PAPER = {"transport": "marginal", "warmup": 0.0}
FAMILIES = [FTMBoostingClassifier, GapRegularizedBoostingClassifier]
X, Y, GROUP = people(200)
COUPLING = OptimalTransportMatcher().match(X, GROUP)


def rows(weights=None):
    return rows_of(X, Y, GROUP, weights)


def penalties(weights=None):
    parts = rows(weights).comparisons(CRITERIA["demographic_parity"])
    return [MatchedGap(COUPLING), MatchedGap(COUPLING, 0.01), SquaredMeanGap(parts, rows(weights))]


def fit(family=FTMBoostingClassifier, X=X, y=Y, group=GROUP, *, sample_weight=None, **settings):
    own = PAPER if family is FTMBoostingClassifier else {}
    model = made(family, **{**QUICK, **own, **settings})
    return model.fit(X, y, sensitive_features=group, sample_weight=sample_weight)


def scores(model, X=X, group=GROUP):
    return model.predict_proba(X, sensitive_features=group)[:, 1]


def table(n=200):
    """A table as tree users have them: categories, text, booleans, and holes."""
    X, y, group = people(n)
    frame = pd.DataFrame(X[:, :2], columns=["wage", "debt"])
    frame["job"] = pd.Categorical(np.where(X[:, 2] > 0.3, "cook", "nurse"))
    frame["town"] = np.array(["A", "B", "C"])[np.arange(n) % 3]
    frame["member"] = X[:, 3] > 0
    frame["sex"] = np.where(group == 1, "m", "f")
    frame.loc[::7, "wage"] = np.nan
    frame.loc[::11, "job"] = None
    frame.loc[::13, "town"] = None
    return frame, y


def some_rows(loader, n):
    """Some rows of a table, or skip where the table is not there."""
    if loader in (load_bank, load_dutch) and "FAIRMATCH_DATA" not in os.environ:
        pytest.skip(f"{loader.__name__} needs its table: set FAIRMATCH_DATA to its folder")
    data = loader()
    index = np.sort(np.random.default_rng(0).permutation(len(data.X))[:n])
    group = np.asarray(data.sensitive_features)[index]
    return data.X.iloc[index], np.asarray(data.y)[index], group


class TestObjective:
    @pytest.mark.parametrize("penalty", range(3))
    @pytest.mark.parametrize("weighted", [False, True])
    def test_the_gradient_is_that_of_finite_differences(self, penalty, weighted):
        generator = np.random.default_rng(0)
        weights = generator.uniform(0.5, 2.0, len(Y)) if weighted else None
        objective = BoostingObjective(rows(weights), 3.0, penalties(weights)[penalty])
        margins, step = generator.normal(size=len(Y)), 1e-5
        gradient, _ = objective.derivatives(margins)
        mass = rows(weights).mass.sum()
        for row in range(0, len(Y), 9):
            ahead, behind = margins.copy(), margins.copy()
            ahead[row] += step
            behind[row] -= step
            rise = objective.values(ahead).sum() - objective.values(behind).sum()
            assert gradient[row] == pytest.approx(mass * rise / (2 * step), rel=1e-5, abs=1e-7)

    @pytest.mark.parametrize("penalty", range(3))
    def test_the_quadratic_lies_above_the_penalty(self, penalty):
        generator, penalty = np.random.default_rng(0), penalties()[penalty]
        for _ in range(50):
            here, there = generator.random((2, len(Y)))
            there = here + (there - here) * generator.random() ** 3
            gradient, curvature = penalty.derivatives(here)
            step = there - here
            above = penalty.value(here) + gradient @ step + 0.5 * curvature @ step**2
            assert penalty.value(there) <= above + 1e-12

    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("weight", [0.5, 2.0, 10.0])
    @pytest.mark.parametrize("learning_rate", [0.1, 0.5])
    def test_what_is_minimised_never_rises(self, family, weight, learning_rate):
        model = fit(family, fairness_weight=weight, n_estimators=60, learning_rate=learning_rate)
        coupling = fit_coupling(X, GROUP)
        penalty = MatchedGap(coupling) if family is FTMBoostingClassifier else penalties()[2]
        objective = BoostingObjective(rows(), weight, penalty)
        inputs = np.column_stack([X, GROUP])
        values = [
            objective.values(
                model.base_margin_ + model.trees_.predict(inputs, raw_score=True, num_iteration=k)
            ).sum()
            for k in range(1, 61)
        ]
        assert (np.diff(values) <= 1e-9).all()


def fit_coupling(X, group):
    encoded = TableEncoder(missing="encode").fit_transform(X)
    return OptimalTransportMatcher(tolerance=1e-3).match(encoded, group)


class TestWhatMustHold:
    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_weight_zero_is_plain_lightgbm(self, family, weighted):
        weight = 1.0 + np.arange(len(Y)) % 3 if weighted else None
        plain = lgb.LGBMClassifier(n_estimators=50, num_leaves=6, verbose=-1, n_jobs=1)
        inputs = np.column_stack([X, GROUP])
        plain.fit(inputs, Y, sample_weight=weight)
        model = fit(family, fairness_weight=0.0, n_estimators=50, sample_weight=weight)
        expected = lgb.Booster.predict(plain.booster_, inputs)
        assert_allclose(scores(model), expected, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_weight_zero_with_heavier_positives_is_plain_lightgbm(self, weighted):
        weight = 1.0 + np.arange(len(Y)) % 3 if weighted else None
        plain = lgb.LGBMClassifier(
            n_estimators=50, num_leaves=6, scale_pos_weight=3.0, verbose=-1, n_jobs=1
        )
        inputs = np.column_stack([X, GROUP])
        plain.fit(inputs, Y, sample_weight=weight)
        settings = {"scale_pos_weight": 3.0, "fairness_weight": 0.0, "n_estimators": 50}
        expected = plain.predict_proba(inputs)[:, 1]
        assert_allclose(scores(fit(sample_weight=weight, **settings)), expected, rtol=0, atol=1e-12)

    def test_heavier_positives_leave_matching_and_penalty_alone(self):
        penalty, margins = MatchedGap(COUPLING), np.linspace(-2.0, 2.0, len(Y))
        plain, heavy = (
            BoostingObjective(rows(), 2.0, penalty, scale_pos_weight=scale) for scale in (1.0, 3.0)
        )
        (loss, gap), (heavy_loss, heavy_gap) = plain.values(margins), heavy.values(margins)
        positive = np.logaddexp(0.0, -margins)[Y == 1].sum() / len(Y)
        assert heavy_loss == pytest.approx(loss + 2.0 * positive)
        assert heavy_gap == gap
        # The matched pairs of both are those of the plain rows; a given coupling changes nothing.
        given, matched = (
            made(FTMBoostingClassifier, scale_pos_weight=3.0, **QUICK, **PAPER).fit(
                X, Y, sensitive_features=GROUP, coupling=coupling
            )
            for coupling in (fit_coupling(X, GROUP), None)
        )
        assert_array_equal(scores(given), scores(matched))
        more = [scores(fit(scale_pos_weight=s, n_estimators=50)).mean() for s in (0.2, 1.0, 5.0)]
        assert more == sorted(more)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_same_seed_same_model(self, family):
        drawn = {"subsample": 0.7, "colsample_bytree": 0.7}
        first, second, other = (fit(family, random_state=seed, **drawn) for seed in (0, 0, 1))
        assert first.trees_.model_to_string() == second.trees_.model_to_string()
        assert (scores(first) != scores(other)).any()

    @pytest.mark.parametrize("transport", ["marginal", "joint"])
    @pytest.mark.parametrize("loader", [load_german, load_adult, load_bank, load_dutch])
    def test_the_matched_gap_falls_with_the_weight_on_every_table(self, loader, transport):
        X, y, group = some_rows(loader, 1500)
        encoded = TableEncoder(missing="encode").fit_transform(X)
        label_weight = 100.0 if transport == "joint" else 0.0
        coupling = OptimalTransportMatcher(label_weight, tolerance=1e-3).match(encoded, group, y)
        path = fairness_path(
            X, y, sensitive_features=group, fairness_weights=[0.0, 0.5, 1.0, 2.0, 5.0, 20.0],
            estimator=made(FTMBoostingClassifier, n_estimators=100, warmup=0.0), coupling=coupling,
        )  # fmt: skip
        gaps = [coupling.gap(scores(model, X, group)) for model in path.models]
        assert gaps == sorted(gaps, reverse=True)
        assert gaps[-1] < 0.02
        last = scores(path.models[-1], X, group)
        assert mean_parity_gap(None, last, sensitive_features=group) < 0.01

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_large_weight_leaves_no_gap_and_still_learns(self, family):
        X, y, group = people(500)
        weight = 20.0 if family is FTMBoostingClassifier else 500.0
        model = fit(family, X, y, group, fairness_weight=weight, n_estimators=200)
        fair = scores(model, X, group)
        assert mean_parity_gap(None, fair, sensitive_features=group) < 0.015
        assert np.mean((fair >= 0.5) == y) > max(y.mean(), 1 - y.mean())

    def test_a_path_is_its_models_one_by_one(self):
        path = fairness_path(
            X, Y, sensitive_features=GROUP, fairness_weights=[0.0, 1.0, 3.0],
            estimator=made(FTMBoostingClassifier, **QUICK, **PAPER),
        )  # fmt: skip
        for weight, model in zip(path.weights, path.models, strict=True):
            assert model.fairness_weight == model.fairness_weight_ == weight
            assert_array_equal(scores(model), scores(fit(fairness_weight=weight)))

    def test_weights_of_rows(self):
        weight = (np.arange(len(Y)) % 4 > 0).astype(float)
        other = np.where(weight > 0, Y, 1 - Y)
        for family in FAMILIES:
            one, two = (scores(fit(family, y=y, sample_weight=weight)) for y in (Y, other))
            assert_array_equal(one, two)
        with pytest.raises(GroupError, match="sum to zero"):
            fit(sample_weight=1.0 - GROUP)


class TestWarmUp:
    def test_the_first_trees_are_those_of_plain_lightgbm(self):
        plain = fit(fairness_weight=0.0, n_estimators=30)
        model = fit(fairness_weight=5.0, n_estimators=30, warmup=0.67)
        inputs = np.column_stack([X, GROUP])
        for k, same in ((20, True), (21, False)):
            first, second = (
                m.trees_.predict(inputs, raw_score=True, num_iteration=k) for m in (model, plain)
            )
            assert (first == second).all() == same
        assert_array_equal(
            scores(fit(fairness_weight=0.0, n_estimators=30, warmup=0.67)), scores(plain)
        )

    def test_only_rounds_with_the_penalty_are_chosen_from(self):
        model = fit(fairness_weight=5.0, n_estimators=60, warmup=0.34, early_stopping_rounds=5)
        watched = model.held_out_objective_
        assert np.isinf(watched[:20]).all()
        assert np.isfinite(watched[20:]).all()
        assert model.n_rounds_ == np.argmin(watched) + 1 > 20
        assert len(watched) == min(model.n_rounds_ + 5, 60)

    def test_a_large_weight_closes_the_gap_and_keeps_what_was_learned(self):
        X, y, group = people(2000)
        cold, warm = (
            fit(
                X=X, y=y, group=group, transport="predicted", fairness_weight=20.0, warmup=warmup,
                n_estimators=200,
            )
            for warmup in (0.0, 0.5)
        )  # fmt: skip
        fair = scores(warm, X, group)
        assert mean_parity_gap(None, fair, sensitive_features=group) < 0.01
        right = [np.mean((scores(m, X, group) >= 0.5) == y) for m in (cold, warm)]
        assert right[1] >= right[0]


class TestSharedWarmup:
    """Trees of the warm-up are grown once for all weights, from the same margins."""

    @pytest.mark.parametrize("own", [{}, {"subsample": 0.7, "subsample_freq": 1}])
    @pytest.mark.parametrize("stopping", [None, 4])
    def test_a_path_has_the_trees_of_every_fit_alone(self, own, stopping):
        model = made(
            FTMBoostingClassifier, n_estimators=24, num_leaves=6, warmup=0.5, random_state=0,
            early_stopping_rounds=stopping, **own,
        )  # fmt: skip
        weights = [2.0, 0.0, 0.3]
        path = fairness_path(
            X, Y, sensitive_features=GROUP, estimator=model, fairness_weights=weights
        )
        for weight, found in zip(weights, path.models, strict=True):
            alone = clone(model).set_params(fairness_weight=weight, warmup=0.5)
            alone.fit(X, Y, sensitive_features=GROUP)
            assert_array_equal(scores(found), scores(alone))
            assert found.n_rounds_ == alone.n_rounds_
        # No warm-up is shared where the rows of every tree are drawn.
        blocks = [m.trees_.model_to_string().split("Tree=")[1:] for m in path.models]
        if stopping is None:
            assert blocks[0][:12] == blocks[2][:12] == blocks[1][:12]


class TestPredictedMap:
    def test_people_are_matched_on_features_and_scores_of_trees_that_did_not_see_them(self):
        model = fit(transport="predicted")
        encoded = TableEncoder(missing="encode").fit_transform(X)
        inputs = np.column_stack([X, GROUP]).astype(float)
        settings = model._settings()
        seed = settings.parameters["seed"]
        unseen = unseen_scores(settings, rows_of(inputs, Y, GROUP), categorical=[])
        # Each half by LightGBM's own classifier, grown on the other.
        order = np.random.default_rng(seed).permutation(len(Y))
        order = order[np.argsort((2 * Y + GROUP)[order], kind="stable")]
        for k in range(2):
            rest = np.sort(np.setdiff1d(order, order[k::2]))
            plain = lgb.LGBMClassifier(n_estimators=10, num_leaves=6, verbose=-1, n_jobs=1)
            plain.fit(inputs[rest], Y[rest])
            expected = plain.predict_proba(inputs[order[k::2]])[:, 1]
            assert_allclose(unseen[order[k::2]], expected, rtol=0, atol=1e-12)
        points = np.column_stack([encoded, 10.0 * unseen])
        coupling = OptimalTransportMatcher(tolerance=1e-3).match(points, GROUP)
        ready = made(FTMBoostingClassifier, **QUICK, warmup=0.0)
        ready.fit(X, Y, sensitive_features=GROUP, coupling=coupling)
        assert_array_equal(scores(model), scores(ready))

    def test_it_stops_early_and_is_saved(self, tmp_path):
        model = fit(transport="predicted", n_estimators=60, early_stopping_rounds=5)
        again = load(model.save(tmp_path))
        assert again.transport == "predicted"
        assert_array_equal(scores(again), scores(model))

    def test_held_out_rows_are_matched_on_scores_of_trees_grown_on_other_held_out_rows(self):
        X, y, group = people(600)
        model = fit(
            X=X, y=y, group=group, transport="predicted", max_gap=1.0,
            gap_measure="matched_parity_gap", fairness_weight=(0.0, 2.0),
        )  # fmt: skip
        _, held_out = stratified_split(y, read_groups(group), 0.2, 0)
        encoded = TableEncoder(missing="encode").fit(X).transform(X[held_out])
        inputs = np.column_stack([X, group])[held_out].astype(float)
        known = rows_of(inputs, y[held_out], group[held_out])
        unseen = unseen_scores(model._settings(), known, categorical=[])
        points = np.column_stack([encoded, 10.0 * unseen])
        pairs = OptimalTransportMatcher(tolerance=1e-3).match(points, group[held_out])
        assert model.fairness_weight_ == 0.0  # it has seen the rows; the other model has not
        expected = pairs.gap(scores(model.path_.models[1], X[held_out], group[held_out]))
        assert model.validation_curve_["matched_parity_gap"][1] == pytest.approx(expected, rel=1e-9)


class TestEarlyStopping:
    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("weight", [0.0, 1.0])
    def test_noise_is_not_learned_for_long(self, family, weight):
        noise = np.random.default_rng(0).permutation(Y)
        model = fit(
            family, y=noise, n_estimators=200, fairness_weight=weight, early_stopping_rounds=10
        )
        watched = model.held_out_objective_
        assert model.n_rounds_ == np.argmin(watched) + 1 == model.trees_.num_trees() < 50
        assert len(watched) == model.n_rounds_ + 10

    def test_the_objective_is_that_of_the_held_out_rows_matched_among_themselves(self):
        X, y, group = people(400)
        model = fit(X=X, y=y, group=group, n_estimators=30, early_stopping_rounds=30)
        train, held_out = stratified_split(y, read_groups(group), 0.2, 0)
        encoded = TableEncoder(missing="encode").fit_transform(X)
        matcher = OptimalTransportMatcher(tolerance=1e-3)
        pairs = matcher.match(encoded[held_out], group[held_out])
        inputs, label = np.column_stack([X, group])[held_out], y[held_out]
        for k in (1, 7, model.n_rounds_):
            margins = model.base_margin_ + model.trees_.predict(
                inputs, raw_score=True, num_iteration=k
            )
            score = 1.0 / (1.0 + np.exp(-margins))
            apart = score[pairs.source_index] - score[pairs.target_index]
            penalty = pairs.mass @ (np.sqrt(apart**2 + 0.05**2) - 0.05)
            expected = log_loss(label, score) + penalty
            assert model.held_out_objective_[k - 1] == pytest.approx(expected, rel=1e-9)
        assert model.base_margin_ == pytest.approx(np.log(y[train].mean() / (1 - y[train].mean())))

    def test_the_kept_trees_are_those_of_training_so_long_without_it(self):
        """Rows that are held out teach nothing."""
        X, y, group = people(400)
        model = fit(X=X, y=y, group=group, n_estimators=60, early_stopping_rounds=5)
        train, _ = stratified_split(y, read_groups(group), 0.2, 0)
        encoded = TableEncoder(missing="encode").fit_transform(X)
        pairs = OptimalTransportMatcher(tolerance=1e-3).match(encoded[train], group[train])
        alone = made(
            FTMBoostingClassifier, **{**QUICK, **PAPER, "n_estimators": model.n_rounds_}
        ).fit(X[train], y[train], sensitive_features=group[train], coupling=pairs)
        assert_array_equal(scores(model, X, group), scores(alone, X, group))

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_path_stops_for_each_weight(self, family, tmp_path):
        own = PAPER if family is FTMBoostingClassifier else {}
        settings = {**QUICK, **own, "n_estimators": 80, "early_stopping_rounds": 5}
        path = fairness_path(
            X,
            Y,
            sensitive_features=GROUP,
            fairness_weights=[0.0, 3.0],
            estimator=made(family, **settings),
        )  # fmt: skip
        for weight, model in zip(path.weights, path.models, strict=True):
            alone = fit(family, fairness_weight=weight, **settings)
            assert_array_equal(scores(model), scores(alone))
            assert model.n_rounds_ == np.argmin(model.held_out_objective_) + 1
            if family is FTMBoostingClassifier:
                assert load(model.save(tmp_path)).n_rounds_ == model.n_rounds_

    def test_with_a_gap(self):
        X, y, group = people(600)
        settings = {"max_gap": 0.1, "gap_measure": "mean_parity_gap", "n_estimators": 60}
        settings |= {"early_stopping_rounds": 5, "fairness_weight": (0.0, 1.0, 5.0)}
        first, second = (fit(X=X, y=y, group=group, **settings) for _ in range(2))
        assert_array_equal(scores(first, X, group), scores(second, X, group))
        assert first.n_rounds_ == np.argmin(first.held_out_objective_) + 1

    def test_without_it_nothing_is_held_out(self):
        model = fit()
        assert model.n_rounds_ == QUICK["n_estimators"]
        assert len(model.held_out_objective_) == 0

    def test_what_does_not_go_together(self):
        with pytest.raises(CouplingError, match="early_stopping_rounds"):
            made(FTMBoostingClassifier, early_stopping_rounds=5).fit(
                X, Y, sensitive_features=GROUP, coupling=COUPLING
            )

    def test_rows_of_weight_zero_are_not_held_out(self):
        _, held_out = stratified_split(Y, read_groups(GROUP), 0.2, 0)
        weight = np.ones(len(Y))
        weight[held_out[GROUP[held_out] == 1]] = 0.0
        kept = weight > 0.0
        for family in FAMILIES:
            model = made(family, early_stopping_rounds=5, **QUICK)
            whole = clone(model).fit(X, Y, sensitive_features=GROUP, sample_weight=weight)
            part = clone(model).fit(X[kept], Y[kept], sensitive_features=GROUP[kept])
            assert_array_equal(scores(whole, X, GROUP), scores(part, X, GROUP))


class TestColumnsAsTheyAre:
    def test_the_trees_see_categories_and_holes(self):
        frame, y = table()
        model = fit(fairness_weight=0.0, X=frame.drop(columns="sex"), y=y, group=frame.sex)
        codes = frame.drop(columns="sex").assign(
            job=frame.job.cat.codes.replace(-1, np.nan),
            town=pd.Categorical(frame.town).codes,
            group=(frame.sex == "m").astype(float),
        )
        codes.loc[codes.town < 0, "town"] = np.nan
        plain = lgb.LGBMClassifier(n_estimators=10, num_leaves=6, verbose=-1, n_jobs=1)
        inputs = codes.to_numpy(dtype=float)
        plain.fit(inputs, y, categorical_feature=[2, 3, 4])
        expected = plain.predict_proba(inputs)[:, 1]
        assert_allclose(scores(model, frame.drop(columns="sex"), frame.sex), expected, atol=1e-12)

    @pytest.mark.filterwarnings("ignore::fairmatch.exceptions.ConstantModelWarning")
    @pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas], ids=["pl", "pa"])
    @pytest.mark.parametrize("more", [{}, {"max_gap": 0.5, "fairness_weight": (0.0, 5.0)}])
    def test_tables_of_every_library_give_the_same_model(self, kind, more):
        frame, y = table()
        settings = {**QUICK, "sensitive_column": "sex", **more}
        reference = made(FTMBoostingClassifier, **settings).fit(frame, y)
        model = made(FTMBoostingClassifier, **settings).fit(kind(frame), y)
        assert_array_equal(model.predict_proba(kind(frame)), reference.predict_proba(frame))

    def test_new_categories_count_as_missing(self):
        frame, y = table()
        model = made(FTMBoostingClassifier, sensitive_column="sex", **QUICK).fit(frame, y)
        assert_array_equal(
            model.predict_proba(frame.assign(town="D")),
            model.predict_proba(frame.assign(town=None)),
        )

    def test_other_columns_are_refused(self):
        frame, y = table()
        model = made(FTMBoostingClassifier, sensitive_column="sex", **QUICK).fit(frame, y)
        with pytest.raises(ColumnError, match="Did you mean 'wage' by 'wages'"):
            model.predict(frame.rename(columns={"wage": "wages"}))

    def test_without_the_group_at_prediction(self):
        frame, y = table()
        model = made(
            FTMBoostingClassifier,
            sensitive_column="sex",
            sensitive_at_prediction=False,
            fairness_weight=5.0,
            **QUICK,
        ).fit(frame, y)
        assert model.trees_.num_feature() == 5
        assert_array_equal(model.predict_proba(frame), model.predict_proba(frame.iloc[:, :-1]))


class TestInterface:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_parameters_clone_and_pickle(self, family):
        model = fit(family)
        assert set(model.get_params(deep=False)) == set(signature(family).parameters)
        assert len(signature(family).parameters) <= 22
        assert repr(clone(model)) == repr(model)
        assert_array_equal(scores(pickle.loads(pickle.dumps(model))), scores(model))

    def test_max_gap(self):
        X, y, group = people(600)
        model = fit(
            X=X, y=y, group=group, max_gap=0.1, gap_measure="mean_parity_gap", n_estimators=40
        )
        curve = model.validation_curve_
        chosen = curve[curve.fairness_weight == model.fairness_weight_].iloc[0]
        assert chosen.mean_parity_gap <= 0.1
        # Among models within one standard error of the best, it is the nearest to the plain one.
        assert chosen.accuracy >= curve[curve.mean_parity_gap <= 0.1].accuracy.max() - 0.02
        assert (curve.expected_gap[curve.fairness_weight < model.fairness_weight_] > 0.1).all()
        matched = fit(max_gap=1.0, gap_measure="matched_parity_gap", fairness_weight=(0.0, 2.0))
        assert matched.validation_curve_.matched_parity_gap.notna().all()
        with pytest.raises(CouplingError, match="max_gap"):
            made(FTMBoostingClassifier, max_gap=0.1).fit(
                X, y, sensitive_features=group, coupling=COUPLING
            )

    def test_a_ready_coupling(self):
        coupling = fit_coupling(X, GROUP)
        model = made(FTMBoostingClassifier, **QUICK, **PAPER)
        model.fit(X, Y, sensitive_features=GROUP, coupling=coupling)
        assert_array_equal(scores(model), scores(fit()))
        with pytest.raises(CouplingError, match="does not match people"):
            GapRegularizedBoostingClassifier().fit(
                X, Y, sensitive_features=GROUP, coupling=coupling
            )

    @pytest.mark.parametrize("routing", [False, True])
    def test_groups_in_the_table(self, routing):
        frame, y = table()
        numbers = frame[["wage", "debt"]].assign(sex=(frame.sex == "m").astype(float))
        scaler = StandardScaler().set_output(transform="pandas")
        model = made(FTMBoostingClassifier, sensitive_column="sex", **QUICK)
        with sklearn.config_context(enable_metadata_routing=routing):
            found = cross_validate(make_pipeline(scaler, model), numbers, y, cv=2)
            search = GridSearchCV(model, {"fairness_weight": [0.0, 5.0]}, cv=2).fit(frame, y)
        assert np.isfinite(found["test_score"]).all()
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_groups_as_metadata(self):
        with sklearn.config_context(enable_metadata_routing=True):
            model = make_pipeline(StandardScaler(), made(FTMBoostingClassifier, **QUICK))
            found = cross_validate(model, X, Y, cv=2, params={"sensitive_features": GROUP})
        assert np.isfinite(found["test_score"]).all()

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"n_estimators": 0}, "n_estimators must be a whole number"),
            ({"warmup": 1.0}, "warmup must be a number in"),
            (
                {"num_leaves": 1},
                r"LightGBM cannot grow these trees: .*num_leaves.*[^ .\n]\. Correct",
            ),
            ({"learning_rate": 0.0}, "learning_rate must be a number in"),
            ({"subsample": 1.5}, "LightGBM cannot grow these trees: .*bagging_fraction"),
            ({"reg_lambda": -1.0}, "LightGBM cannot grow these trees: .*lambda_l2"),
            ({"scale_pos_weight": 0.0}, "scale_pos_weight must be a number in"),
            ({"early_stopping_rounds": 0}, "early_stopping_rounds must be a whole number"),
            (
                {"early_stopping_rounds": 5, "validation_size": 1.0},
                "validation_size must be a number in",
            ),
            ({"fairness_weight": -1.0}, "fairness_weight must be a number in"),
            ({"transport": "near"}, "transport must be"),
        ],
    )
    def test_settings_that_make_no_sense(self, settings, words):
        with pytest.raises(InputError, match=words):
            fit(**settings)

    def test_without_lightgbm(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        monkeypatch.delitem(sys.modules, "fairmatch.learning.trees")
        monkeypatch.delitem(vars(fairmatch), "FTMBoostingClassifier")
        with pytest.raises(MissingExtraError, match=r"fairmatch\[boost\]"):
            _ = fairmatch.FTMBoostingClassifier

    def test_the_command_line_grows_trees_unless_it_is_told_how_many_epochs(self, tmp_path):
        train = ["train", "german", "--no-picture", "--fairness-weight", "0", "--out"]
        assert main([*train, str(tmp_path / "trees"), "--rounds", "2"]) == 0
        assert type(load(tmp_path / "trees")) is FTMBoostingClassifier
        assert main([*train, str(tmp_path / "network"), "--epochs", "1"]) == 0
        assert type(load(tmp_path / "network")) is fairmatch.FTMClassifier

    def test_command_line(self, tmp_path, capsys):
        train = ["train", "german", "--learner", "boosting", "--no-picture", "--out", str(tmp_path)]
        assert main([*train, "--epochs", "3"]) == 2
        assert "--epochs was given, but the learner is boosting" in capsys.readouterr().err
        assert main([*train, "--rounds", "3", "--transport", "predicted"]) == 0
        assert type(load(tmp_path)) is FTMBoostingClassifier
        network = [*train[:3], "network", *train[4:], "--transport", "predicted", "--epochs", "1"]
        assert main([*network, "--given", "job", "--similar", "relevance"]) == 0
        assert (load(tmp_path).given, load(tmp_path).similarity) == (("job",), "relevance")


class TestFiles:
    @pytest.fixture
    def saved(self, tmp_path):
        frame, y = table()
        return (
            made(FTMBoostingClassifier, sensitive_column="sex", **QUICK)
            .fit(frame, y)
            .save(tmp_path)
        )

    @pytest.mark.parametrize("seen", [False, True])
    def test_round_trip(self, seen, tmp_path):
        frame, y = table()
        settings = {"sensitive_column": "sex", "sensitive_at_prediction": seen}
        model = made(FTMBoostingClassifier, **settings, **QUICK).fit(frame, y)
        again = load(model.save(tmp_path))
        assert type(again) is FTMBoostingClassifier
        assert (
            again.set_params(estimator__n_jobs=1).get_params().keys() == model.get_params().keys()
        )
        assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
        assert_array_equal(load(again.save(tmp_path)).predict(frame), model.predict(frame))
        assert {path.name for path in tmp_path.iterdir()} == {"model.json", "trees.txt"}

    @pytest.mark.parametrize("settings", [{}, {"early_stopping_rounds": 2, "warmup": 0.5}], ids=str)
    def test_what_early_stopping_watched(self, settings, tmp_path):
        model = fit(**settings)
        again = load(model.save(tmp_path))
        assert_array_equal(again.held_out_objective_, model.held_out_objective_)
        assert set(vars(again)) == set(vars(model))
        json.loads((tmp_path / "model.json").read_text(), parse_constant=pytest.fail)

    @pytest.mark.parametrize("content", ["x", [[1.0]], ["x"], 3], ids=str)
    def test_hostile_objectives(self, saved, content):
        edit(saved, held_out_objective=content)
        with pytest.raises(ModelFileError, match="is damaged"):
            load(saved)

    def test_lightgbm_reads_the_file_itself(self, saved):
        assert lgb.Booster(model_file=saved / "trees.txt").num_trees() == QUICK["n_estimators"]

    def test_trees_of_one_leaf(self, tmp_path):
        model = fit(min_child_samples=len(Y))
        assert len(set(scores(model))) == 1
        assert_array_equal(scores(load(model.save(tmp_path))), scores(model))

    def test_one_bit(self, saved):
        content = bytearray((saved / "trees.txt").read_bytes())
        content[500] ^= 1
        (saved / "trees.txt").write_bytes(content)
        with pytest.raises(ModelFileError, match="checksum differs"):
            load(saved)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("split_feature", "999"),
            ("split_feature", "-1"),
            ("left_child", "0"),
            ("left_child", "900"),
            ("right_child", "-900"),
            ("threshold", "nan"),
            ("decision_type", "99"),
            ("leaf_value", "inf"),
            ("cat_boundaries", "7"),
            ("cat_threshold", "1 1 1 1"),
            ("cat_threshold", "-1"),
            ("is_linear", "1"),
            ("leaf_value", "words"),
        ],
    )
    def test_a_file_that_was_changed_with_its_checksum(self, saved, field, value):
        text = (saved / "trees.txt").read_text()
        start = text.index(f"\n{field}=") + len(field) + 2
        end = text.index("\n", start)
        rest = text[start:end].split(" ")[1:]
        self.exchange(saved, text[:start] + " ".join([value, *rest]) + text[end:])
        with pytest.raises(ModelFileError, match=r"trees\.txt does not hold trees"):
            load(saved)

    @pytest.mark.parametrize("text", ["", "tree\n", "null", "\nTree=0\n", "\xff"])
    def test_files_that_are_something_else(self, saved, text):
        self.exchange(saved, text)
        with pytest.raises(ModelFileError, match=r"trees\.txt does not hold trees"):
            load(saved)

    def exchange(self, folder, text):
        (folder / "trees.txt").write_bytes(text.encode("latin-1"))
        description = json.loads((folder / "model.json").read_text())
        description["weights_sha256"] = hashlib.sha256(text.encode("latin-1")).hexdigest()
        (folder / "model.json").write_text(json.dumps(description))


class TestDefaults:
    """What a caller gets who names a bound and nothing else."""

    def test_people_are_matched_on_predicted_scores_after_a_warm_up(self):
        assert (FTMBoostingClassifier().transport, FTMBoostingClassifier().warmup) == (
            "predicted",
            0.5,
        )
        assert GapRegularizedBoostingClassifier().warmup == 0.0

    @pytest.mark.parametrize("bound", [0.02, 0.05])
    def test_a_small_gap_is_not_bought_by_refusing_nearly_everybody(self, bound):
        """The marginal map keeps both bounds on these rows by accepting a tenth as many people."""
        X, y, group = some_rows(load_adult, 5000)
        settings = {"n_estimators": 40, "random_state": 0, "verbose": 0}
        model = made(
            FTMBoostingClassifier,
            max_gap=bound,
            fairness_weight=[0.0, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 5.0],
            **settings,
        ).fit(X, y, sensitive_features=group)
        curve = model.validation_curve_.set_index("fairness_weight")
        kept, plain = curve.loc[model.fairness_weight_], curve.loc[0.0]
        assert kept["demographic_parity_gap"] <= bound < plain["demographic_parity_gap"]
        assert kept["acceptance_rate"] > 0.5 * plain["acceptance_rate"]
        assert kept["accuracy"] > plain["accuracy"] - 0.03


class TestSamples:
    """People of large tables are matched on a sample; the loss sees everybody."""

    def test_the_penalty_sees_pairs_of_the_sample_and_the_loss_all_rows(self):
        model = made(FTMBoostingClassifier, match_rows=30, **QUICK, **PAPER)
        penalty = model._penalty(rows(), None)
        pairs = penalty.coupling
        matched = np.union1d(pairs.source_index, pairs.target_index)
        assert len(matched) == 60
        assert pairs.n_rows == len(Y)
        gradient, _ = penalty.derivatives(np.random.default_rng(0).random(len(Y)))
        assert set(np.flatnonzero(gradient)) <= set(matched.tolist())
        fitted = model.fit(X, Y, sensitive_features=GROUP)
        assert fitted.trees_.num_trees() == QUICK["n_estimators"]
        assert not np.array_equal(fitted.predict_proba(X, sensitive_features=GROUP),
                                  fit().predict_proba(X, sensitive_features=GROUP))  # fmt: skip

    def test_everybody_is_matched_up_to_the_size(self):
        whole = (
            made(FTMBoostingClassifier, match_rows=None, **QUICK, **PAPER)
            ._penalty(rows(), None)
            .coupling
        )
        for size in (len(Y) // 2, "auto"):
            same = (
                made(FTMBoostingClassifier, match_rows=size, **QUICK, **PAPER)
                ._penalty(rows(), None)
                .coupling
            )
            np.testing.assert_array_equal(same.source_index, whole.source_index)
            np.testing.assert_array_equal(same.mass, whole.mass)
        transport = FTMBoostingClassifier()._transport()
        assert transport._most_rows(36_000) == 5_000
        assert transport._most_rows(250_000) == 20_000

    def test_the_seed_draws_the_sample(self):
        def source(seed):
            settings = {**QUICK, **PAPER, "random_state": seed}
            model = made(FTMBoostingClassifier, match_rows=30, **settings)
            return model._penalty(rows(), None).coupling.source_index.tolist()

        assert source(0) == source(0) != source(1)
        assert source(None) == source(None)

    @pytest.mark.parametrize("match_rows", [1, 2.5, "all"])
    def test_sizes_that_are_none(self, match_rows):
        with pytest.raises(InputError, match="match_rows"):
            made(FTMBoostingClassifier, match_rows=match_rows).fit(X, Y, sensitive_features=GROUP)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_as_many_threads_grow_the_same_trees_again(self, n_jobs):
        one, other = (fit(n_jobs=n_jobs).trees_.model_to_string() for _ in range(2))
        assert one == other


def test_a_learner_takes_the_best_plan_where_nothing_can_be_proven(monkeypatch):
    from fairmatch.matching import network

    monkeypatch.setattr(network, "DENSE_ARCS", 0)
    monkeypatch.setattr(network, "_MAX_ROUNDS", 1)
    with pytest.raises(SolverError, match="relative gap"):
        OptimalTransportMatcher(tolerance=1e-12).match(X, GROUP)
    matcher = OptimalTransportMatcher(tolerance=1e-12, on_unproven="return")
    certificate = matcher.match(X, GROUP).certificate
    best = COUPLING.certificate.cost
    assert certificate.bound <= best <= certificate.cost * (1 + 1e-12)
    assert certificate.relative_gap > 1e-12
    assert FTMBoostingClassifier()._transport().matcher().on_unproven == "return"
    assert fit(transport=matcher).predict(X, sensitive_features=GROUP).shape == Y.shape


class TestEstimator:
    """The user's own LightGBM estimator holds everything about the trees."""

    def test_none_is_two_hundred_trees_with_todays_parameters(self):
        plain = FTMBoostingClassifier(random_state=0).fit(X, Y, sensitive_features=GROUP)
        same = lgb.LGBMClassifier(n_estimators=200, n_jobs=1, subsample_freq=1)
        model = FTMBoostingClassifier(same, random_state=0).fit(X, Y, sensitive_features=GROUP)
        assert plain.n_rounds_ == 200
        assert_array_equal(scores(model), scores(plain))

    @pytest.mark.parametrize(
        ("trees", "words"),
        [
            (lgb.LGBMClassifier, "must be an instance of LightGBM's LGBMClassifier"),
            (lgb.LGBMRegressor(), "must be an instance of LightGBM's LGBMClassifier"),
            (RandomForestClassifier(), "must be an instance of LightGBM's LGBMClassifier"),
            (lgb.LGBMClassifier(boosting_type="dart"), "boosting_type='dart'"),
            (lgb.LGBMClassifier(boosting_type="rf"), "boosting_type='rf'"),
            (lgb.LGBMClassifier(linear_tree=True), "linear trees"),
            (lgb.LGBMClassifier(objective=max), "a function as its objective"),
            (lgb.LGBMClassifier(metric=len), "a function as its metric"),
            (lgb.LGBMClassifier(objective="cross_entropy"), "objective='cross_entropy'"),
            (lgb.LGBMClassifier(early_stopping_rounds=5), "Set early_stopping_rounds beside"),
            (lgb.LGBMClassifier(class_weight="balanced"), "Use scale_pos_weight"),
            (lgb.LGBMClassifier(eta=0.3), "Write learning_rate= instead"),
            (lgb.LGBMClassifier(forcedsplits_filename="splits.json"), "leave it out"),
            (RandomForestClassifier(), "got RandomForestClassifier.*QuantileAlignmentClassifier"),
            (lgb.LGBMClassifier(mc=[0, 0, 0, 0]), "Write monotone_constraints= instead"),
            (lgb.LGBMClassifier(sigmoid=2.0), "sigmoid=2.0.*own objective"),
            (lgb.LGBMClassifier(boost_from_average=False), "own objective"),
            (lgb.LGBMClassifier(seed=3), "Write random_state= instead"),
            (lgb.LGBMClassifier(categorical_feature=[0]), "'category'"),
            (lgb.LGBMClassifier(interaction_constraints=[["wage", "debt"]]), "positions"),
        ],
        ids=str,
    )
    def test_what_cannot_be_used_is_refused(self, trees, words):
        with pytest.raises(InputError, match=words):
            FTMBoostingClassifier(trees).fit(X, Y, sensitive_features=GROUP)

    def test_monotone_constraints_are_those_of_the_columns_of_x(self):
        frame, y = table()
        numbers = frame[["sex", "wage", "debt"]]
        # The same constraints: the group first, last, beside X, or not seen at prediction.
        given = {"fairness_weight": 0.5, "random_state": 0}
        tested = numbers.assign(wage=0.0, debt=np.linspace(-2.0, 2.0, len(frame)))
        falls = []
        for names, constraints, settings in (
            (["sex", "wage", "debt"], [0, 0, -1], {"sensitive_column": "sex"}),
            (["wage", "debt", "sex"], np.array([0, -1, 0]), {"sensitive_column": 2}),
            (["wage", "sex", "debt"], (0, 0, -1), {"sensitive_column": ["sex"]}),
            (["wage", "debt"], [0, -1], {}),
            (["wage", "debt"], [0, -1, 0], {}),
            (["wage", "debt"], [0, -1], {"sensitive_at_prediction": False}),
            (
                ["sex", "wage", "debt"], [0, 0, -1],
                {"sensitive_column": "sex", "sensitive_at_prediction": False},
            ),
        ):  # fmt: skip
            trees = lgb.LGBMClassifier(n_estimators=10, monotone_constraints=constraints)
            model = FTMBoostingClassifier(trees, **given, **settings)
            beside = {} if "sex" in names else {"sensitive_features": frame["sex"]}
            model.fit(numbers[names], y, **beside)
            new = tested[names].assign(**{"sex": "m"} if "sex" in names else {})
            known = {} if "sex" in names else {"sensitive_features": ["m"] * len(new)}
            if "sensitive_at_prediction" in settings:
                known = {}
            falls.append(model.predict_proba(new, **known)[:, 1])
            assert (np.diff(falls[-1]) <= 0.0).all()
            assert falls[-1][0] > falls[-1][-1]
        for own in falls[1:5]:
            assert_array_equal(own, falls[0])
        assert_array_equal(falls[5], falls[6])

    @pytest.mark.parametrize(
        ("constraints", "words"),
        [
            ([0, -1], r"has 2 numbers, and X has 5 columns: wage, debt, job, town, member\. Pass"),
            ([0, -1, 0, 0, 0, 0, 0], "has 7 numbers, and X has 5"),
            ([0, 0, 1, 0, 0], r"column 'job' is categorical.*0"),
            ([0, 0, 0, 0, 0, 1], "The entry of the group must be 0"),
            ([0, 2, 0, 0, 0], "-1, 0 or 1 for every column"),
            ("0,1,0,0,0", "-1, 0 or 1 for every column"),
            ({"wage": 1}, "-1, 0 or 1 for every column"),
        ],
        ids=str,
    )
    def test_monotone_constraints_that_cannot_be_kept_are_refused(self, constraints, words):
        frame, y = table()
        model = FTMBoostingClassifier(lgb.LGBMClassifier(monotone_constraints=constraints))
        with pytest.raises(InputError, match=words) as error:
            model.fit(frame.drop(columns="sex"), y, sensitive_features=frame["sex"])
        assert error.value.parameter == "estimator"

    def test_a_monotone_group_is_refused(self):
        frame, y = table()
        trees = lgb.LGBMClassifier(monotone_constraints=[1, 0, 0])
        model = FTMBoostingClassifier(trees, sensitive_column="sex")
        with pytest.raises(InputError, match="The entry of the group must be 0"):
            model.fit(frame[["sex", "wage", "debt"]], y)

    def test_advanced_constraints_do_not_meet_categories(self):
        """LightGBM would end the process."""
        frame, y = table()
        trees = lgb.LGBMClassifier(n_estimators=5, monotone_constraints_method="advanced")
        with pytest.raises(InputError, match="'intermediate'"):
            FTMBoostingClassifier(trees).fit(frame, y, sensitive_features=frame["sex"])
        trees.set_params(monotone_constraints_method="intermediate")
        FTMBoostingClassifier(trees).fit(frame, y, sensitive_features=frame["sex"])

    def test_its_parameters_are_searched(self):
        frame, y = table()
        model = made(FTMBoostingClassifier, sensitive_column="sex", **QUICK)
        search = GridSearchCV(model, {"estimator__num_leaves": [2, 6]}, cv=2).fit(frame, y)
        assert search.best_params_["estimator__num_leaves"] in (2, 6)

    def test_the_seed_is_ours_unless_there_is_none(self):
        drawn = {"n_estimators": 5, "n_jobs": 1, "subsample": 0.5, "subsample_freq": 1}
        found = [
            scores(FTMBoostingClassifier(
                lgb.LGBMClassifier(**drawn, random_state=inner), random_state=outer
            ).fit(X, Y, sensitive_features=GROUP))
            for inner, outer in ((1, 0), (2, 0), (0, None), (1, None))
        ]  # fmt: skip
        assert_array_equal(found[0], found[1])
        assert_array_equal(found[0], found[2])
        assert not np.array_equal(found[2], found[3])

    def test_it_is_saved_without_threads(self, tmp_path):
        model = fit(num_leaves=5, n_jobs=2, monotone_constraints=[0, 0, 0, 0, 0])
        again = load(model.save(tmp_path))
        assert again.estimator.num_leaves == 5
        assert again.estimator.n_jobs is None
        assert again.estimator.monotone_constraints == [0, 0, 0, 0, 0]
        assert_array_equal(scores(again), scores(model))

    @pytest.mark.parametrize("name", ["fit", "_Booster", "predict", "boosting"])
    def test_a_file_cannot_replace_a_method(self, name, tmp_path):
        saved = fit().save(tmp_path / "model")
        description = json.loads((saved / "model.json").read_text())
        description["parameters"]["estimator"][name] = "x"
        description["sha256"] = _digest(description)
        (saved / "model.json").write_text(json.dumps(description))
        with pytest.raises(ModelFileError):
            load(saved)
