import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_array_equal
from paper.rivals import ExponentiatedGradientClassifier, LAFTRTransformer, SIPMTransformer
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from synthetic import NETWORKS, QUICK, made, people

from fairmatch import (
    FTMBoostingClassifier,
    FTMBoostingRegressor,
    FTMClassifier,
    FTMRegressor,
    MatchSmoothingClassifier,
    MatchSmoothingRegressor,
    NeuralNetwork,
    QuantileAlignmentClassifier,
    QuantileAlignmentRegressor,
)
from fairmatch.exceptions import InputError
from fairmatch.measures import demographic_parity_gap
from fairmatch.people.encoding import TableEncoder


class _GroupsFromX:
    """Supplies the groups that scikit-learn's checks do not know of, by the first column."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sensitive_features=_split(X), sample_weight=sample_weight)


class FTM(_GroupsFromX, FTMClassifier):
    pass


class FTMBoosting(_GroupsFromX, FTMBoostingClassifier):
    pass


class FTMForNumbers(_GroupsFromX, FTMRegressor):
    pass


class FTMBoostingForNumbers(_GroupsFromX, FTMBoostingRegressor):
    pass


class ExponentiatedGradient(ExponentiatedGradientClassifier):
    """Takes no weights. Every other row is of one group, so that groups are not the labels."""

    def fit(self, X, y):
        return super().fit(X, y, sensitive_features=_every_other(X))


class Smoothed(_GroupsFromX, MatchSmoothingClassifier):
    pass


class SmoothedForNumbers(_GroupsFromX, MatchSmoothingRegressor):
    pass


class _GroupsOfNewRows(_GroupsFromX):
    """Supplies the groups of new rows too: all of one group, so that rows may come in any order."""

    def _inputs(self, X, sensitive_features):
        return super()._inputs(X, np.zeros(len(np.asarray(X)), dtype=int))


class Aligned(_GroupsOfNewRows, QuantileAlignmentClassifier):
    pass


class AlignedForNumbers(_GroupsOfNewRows, QuantileAlignmentRegressor):
    pass


class _RepresentsGroupsFromX(_GroupsFromX):
    """Makes two classes of any target: the checks know that of classifiers alone.

    `TransportRepairTransformer` is not among the checked: it needs the groups of new rows too.
    """

    def fit(self, X, y=None, sample_weight=None):
        values = np.asarray(y)
        if values.ndim == 1 and values.dtype.kind in "iuf" and len(np.unique(values)) > 2:
            y = values > np.median(values) if np.isfinite(values).all() else y
        return super().fit(X, y, sample_weight=sample_weight)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


class LAFTR(_RepresentsGroupsFromX, LAFTRTransformer):
    pass


class SIPM(_RepresentsGroupsFromX, SIPMTransformer):
    pass


def _every_other(X):
    shape = getattr(X, "shape", None) or np.asarray(X).shape
    return np.arange(max(2, *shape[:1])) % 2


def _split(X):
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        return _every_other(X)
    above = array[:, 0] > np.median(array[:, 0]) if array.size else array[:, :0].any(axis=1)
    copied = len(np.unique(array[:, 0])) < 3 if array.size else False
    return above if 1 < above.sum() < len(above) - 1 and not copied else _every_other(X)


STOCHASTIC = (
    "rows are drawn by weight: fits agree in distribution, and to the bit only for rows that are "
    "repeated next to each other"
)


FOLDED = "rows that are repeated fall into other folds than rows that are weighed"
COUNTED = "LightGBM counts rows, whatever their weights, where it bins columns and limits leaves"


def expected_failures(estimator):
    if isinstance(estimator, ExponentiatedGradient):
        return {}
    if isinstance(estimator, Aligned | AlignedForNumbers | Smoothed | SmoothedForNumbers):
        return {"check_sample_weight_equivalence_on_dense_data": FOLDED}
    is_boosting = isinstance(estimator, FTMBoosting | FTMBoostingForNumbers)
    reason = COUNTED if is_boosting else STOCHASTIC
    return {"check_sample_weight_equivalence_on_dense_data": reason}


BLIND = {"sensitive_at_prediction": False}
LEARN_FAST = {"estimator": NeuralNetwork((8,), epochs=4, learning_rate=0.05)}
FEW = {"min_child_samples": 2, "n_jobs": 1}


@parametrize_with_checks(
    [
        FTM(**BLIND, **LEARN_FAST),
        FTMBoosting(LGBMClassifier(n_estimators=10, **FEW), **BLIND),
        FTMForNumbers(fairness_weight=0.1, **BLIND, **LEARN_FAST),
        FTMBoostingForNumbers(LGBMRegressor(n_estimators=20, **FEW), fairness_weight=0.1, **BLIND),
        ExponentiatedGradient(**BLIND, max_iter=2),
        Aligned(LogisticRegression(), cv=2),
        AlignedForNumbers(LinearRegression(), cv=2),
        Smoothed(LogisticRegression(), **BLIND, cv=2),
        SmoothedForNumbers(LinearRegression(), fairness_weight=0.1, **BLIND, cv=2),
        LAFTR(**BLIND, **LEARN_FAST, n_components=2),
        SIPM(**BLIND, **LEARN_FAST, n_components=2),
    ],
    expected_failed_checks=expected_failures,
)
# The groups of these checks are made of a column, which gives them away.
@pytest.mark.filterwarnings("ignore::fairmatch.exceptions.LeakWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def table(n=120, seed=0):
    X, y, group = people(n, seed)
    frame = pd.DataFrame(X, columns=["wage", "debt", "age", "visits"])
    frame["job"] = np.where(X[:, 2] > 0.3, "cook", "nurse")
    frame["sex"] = np.where(group == 1, "m", "f")
    return frame, y


def in_the_table(**more):
    return made(FTMClassifier, sensitive_column="sex", **QUICK, **more)


class TestWithTheGroupsInTheTable:
    """Every meta-estimator works, routing or not, because the groups travel in X."""

    @pytest.fixture(params=[False, True], autouse=True)
    def routing(self, request):
        with sklearn.config_context(enable_metadata_routing=request.param):
            yield

    def test_grid_search(self):
        X, y = table()
        search = GridSearchCV(in_the_table(), {"fairness_weight": [0.0, 5.0]}, cv=2).fit(X, y)
        alone = in_the_table(**search.best_params_).fit(X, y)
        assert_array_equal(search.predict_proba(X), alone.predict_proba(X))

    def test_cross_validation_with_a_measure(self):
        X, y = table()
        scores = cross_validate(in_the_table(), X, y, cv=2)["test_score"]
        assert scores.shape == (2,)
        assert np.isfinite(scores).all()
        assert_array_equal(scores, cross_validate(in_the_table(), X, y, cv=2)["test_score"])

    def test_cross_val_predict(self):
        X, y = table()
        halves = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
        scores = cross_val_predict(in_the_table(), X, y, cv=halves, method="predict_proba")
        alone = in_the_table().fit(X[:60], y[:60]).predict_proba(X[60:])
        assert_array_equal(scores[60:], alone)

    def test_fixed_threshold(self):
        X, y = table()
        model = FixedThresholdClassifier(in_the_table(), threshold=0.3).fit(X, y)
        alone = in_the_table().fit(X, y)
        assert_array_equal(model.predict(X), alone.predict_proba(X)[:, 1] >= 0.3)

    def test_bagging_passes_arrays_and_needs_the_position(self):
        X, y = table()
        numbers = X.drop(columns="job").assign(sex=(X.sex == "m").astype(float))
        model = made(
            FTMBoostingClassifier, fairness_weight=0.0, n_estimators=20, sensitive_column=4
        )
        bag = BaggingClassifier(model, n_estimators=2, random_state=0).fit(numbers, y)
        assert bag.score(numbers, y) > 0.7
        with pytest.raises(InputError, match="Pass a position"):
            BaggingClassifier(in_the_table(), n_estimators=2).fit(numbers, y)

    def test_calibration(self):
        X, y = table()
        model = CalibratedClassifierCV(in_the_table(), cv=2).fit(X, y)
        assert model.predict_proba(X).shape == (120, 2)

    def test_pipeline(self):
        X, y = table()
        numbers = X.drop(columns="job").assign(sex=(X.sex == "m").astype(float))
        scaler = StandardScaler().set_output(transform="pandas")
        model = make_pipeline(scaler, in_the_table()).fit(numbers, y)
        scaled = scaler.fit_transform(numbers)
        alone = in_the_table().fit(scaled, y)
        assert_array_equal(model.predict_proba(numbers), alone.predict_proba(scaled))


class TestWithTheGroupsAsMetadata:
    def test_routing_reaches_fit_predict_and_score(self):
        X, y = table()
        groups = X.pop("sex")
        with sklearn.config_context(enable_metadata_routing=True):
            model = GridSearchCV(
                made(FTMClassifier, **QUICK), {"fairness_weight": [0.0, 5.0]}, cv=2
            )
            model.fit(X, y, sensitive_features=groups)
            assert np.isfinite(model.cv_results_["mean_test_score"]).all()
            scores = cross_validate(
                made(FTMClassifier, **QUICK), X, y, cv=2, params={"sensitive_features": groups}
            )
            assert np.isfinite(scores["test_score"]).all()

    @pytest.mark.parametrize("search", [False, True])
    def test_without_routing_the_way_that_works_is_told(self, search):
        X, y = table()
        groups = X.pop("sex")
        params, model = {"sensitive_features": groups}, made(FTMClassifier, **QUICK)
        grid = GridSearchCV(model, {"estimator__epochs": [1]}, cv=2)
        told = pytest.raises(ValueError, match=r"sensitive_column=(.|\n)*enable_metadata_routing")
        with told:
            grid.fit(X, y, **params) if search else cross_validate(model, X, y, cv=2, params=params)
        blind = made(FTMClassifier, sensitive_at_prediction=False, **QUICK)
        found = cross_validate(blind, X, y, cv=2, params={"sensitive_features": groups})
        assert np.isfinite(found["test_score"]).all()

    @pytest.mark.parametrize("scoring", ["roc_auc", ["accuracy", "roc_auc"]])
    @pytest.mark.parametrize("search", [False, True])
    def test_scorers_that_lose_the_groups_are_an_error_and_not_nan(self, scoring, search):
        X, y = table()
        groups = X.pop("sex")
        model = made(FTMClassifier, **QUICK)
        with sklearn.config_context(enable_metadata_routing=True):
            told = pytest.raises(ValueError, match=r"scorers do not pass them on(.|\n)*scoring=")
            with told:
                if search:
                    grid = GridSearchCV(model, {"fairness_weight": [0.0]}, scoring=scoring,
                                        refit=False, cv=2)  # fmt: skip
                    grid.fit(X, y, sensitive_features=groups)
                else:
                    params = {"sensitive_features": groups}
                    cross_validate(model, X, y, cv=2, params=params, scoring=scoring)

            def known(fitted, X, y):  # the groups are found by the index of X
                return fitted.score(X, y, sensitive_features=groups[X.index])

            params = {"sensitive_features": groups}
            found = cross_validate(model, X, y, cv=2, params=params, scoring=known)
        assert np.isfinite(found["test_score"]).all()

    def test_a_wrapper_of_ones_own_may_hand_the_groups_on(self):
        class Wrapper(ClassifierMixin, BaseEstimator):
            def fit(self, X, y):
                given = {"sensitive_features": X["sex"]}
                self.model_ = made(FTMClassifier, **QUICK).fit(X.drop(columns="sex"), y, **given)
                self.classes_ = self.model_.classes_
                return self

            def predict(self, X):
                return self.model_.predict(X.drop(columns="sex"), sensitive_features=X["sex"])

        X, y = table()
        assert np.isfinite(cross_validate(Wrapper(), X, y, cv=2)["test_score"]).all()

    def test_a_measure_as_a_scorer_is_given_the_groups(self):
        X, y = table()
        groups = X.pop("sex")
        with sklearn.config_context(enable_metadata_routing=True):
            gap = make_scorer(demographic_parity_gap).set_score_request(sensitive_features=True)
            model = made(FTMClassifier, sensitive_at_prediction=False, **QUICK)
            params = {"sensitive_features": groups}
            result = cross_validate(model, X, y, cv=2, params=params, scoring=gap)
        assert ((result["test_score"] >= 0.0) & (result["test_score"] <= 1.0)).all()

    @pytest.mark.parametrize("routing", [False, True])
    def test_pipeline(self, routing):
        X, y, group = people()
        alone = made(FTMClassifier, **QUICK)
        with sklearn.config_context(enable_metadata_routing=routing):
            model = make_pipeline(StandardScaler(), made(FTMClassifier, **QUICK))
            name = "sensitive_features" if routing else "ftmclassifier__sensitive_features"
            model.fit(X, y, **{name: group})
            scores = model.predict_proba(X, sensitive_features=group)
        scaled = StandardScaler().fit_transform(X)
        alone.fit(scaled, y, sensitive_features=group)
        assert_array_equal(scores, alone.predict_proba(scaled, sensitive_features=group))

    def test_groups_given_nowhere_names_both_ways(self):
        X, y, group = people()
        with pytest.raises(InputError, match=r"sensitive_features=.*sensitive_column="):
            made(FTMClassifier, **QUICK).fit(X, y)
        model = made(FTMClassifier, **QUICK).fit(X, y, sensitive_features=group)
        with pytest.raises(InputError, match="sensitive_at_prediction=False"):
            model.predict(X)


@pytest.mark.parametrize("family", [*NETWORKS, ExponentiatedGradientClassifier])
class TestEveryClass:
    def test_parameters_and_clone(self, family):
        parameters = set(inspect.signature(family).parameters)
        model = made(family, sensitive_column="sex")
        assert set(model.get_params()) == parameters
        assert set(vars(model)) == parameters
        copy = clone(model).set_params(sensitive_column="gender")
        assert (model.sensitive_column, copy.sensitive_column) == ("sex", "gender")

    def test_pickle(self, family):
        X, y, group = people()
        settings = QUICK if family in NETWORKS else {}
        model = made(family, **settings).fit(X, y, sensitive_features=group)
        copy = pickle.loads(pickle.dumps(model))
        assert_array_equal(
            copy.predict_proba(X, sensitive_features=group),
            model.predict_proba(X, sensitive_features=group),
        )

    def test_columns_are_remembered_and_forgotten(self, family):
        X, y = table()
        settings = QUICK if family in NETWORKS else {}
        model = made(family, sensitive_column="sex", **settings).fit(X, y)
        assert model.n_features_in_ == 6
        assert model.feature_names_in_.tolist() == list(X.columns)
        X, y, group = people()
        model.set_params(sensitive_column=None).fit(X, y, sensitive_features=group)
        assert model.n_features_in_ == 4
        assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (False, True), ("no", "yes"), (1.0, 2.0)], ids=str
)
def test_any_two_labels(labels):
    X, y, group = people()
    reference = made(FTMClassifier, **QUICK).fit(X, y, sensitive_features=group)
    model = made(FTMClassifier, **QUICK).fit(X, np.array(labels)[y], sensitive_features=group)
    assert tuple(model.classes_) == labels
    scores = model.predict_proba(X, sensitive_features=group)
    assert_array_equal(scores, reference.predict_proba(X, sensitive_features=group))
    decided = model.predict(X, sensitive_features=group)
    assert_array_equal(decided, np.array(labels)[(scores[:, 1] >= 0.5).astype(int)])
    assert model.score(X, np.array(labels)[y], sensitive_features=group) == np.mean(
        decided == np.array(labels)[y]
    )


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
@pytest.mark.parametrize("more", [{}, {"max_gap": 0.5, "fairness_weight": (0.0, 5.0)}], ids=str)
@pytest.mark.filterwarnings("ignore::fairmatch.exceptions.ConstantModelWarning")
def test_tables_of_every_library_give_the_same_model(kind, more):
    X, y = table()
    reference = in_the_table(**more).fit(X, y)
    model = in_the_table(**more).fit(kind(X), y)
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert_array_equal(model.predict_proba(kind(X)), reference.predict_proba(X))


def test_missing_values_are_refused_unless_the_encoder_takes_them():
    X, y = table()
    X.loc[3, "age"] = np.nan
    with pytest.raises(InputError, match=r"'age' \(1\).*missing='encode'"):
        in_the_table().fit(X, y)
    model = in_the_table(encoder=TableEncoder(missing="encode")).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
