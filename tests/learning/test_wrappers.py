"""Wrappers around other people's models, against the plain functions and linear algebra."""

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from synthetic import people

from fairmatch import (
    MatchSmoothingClassifier,
    OptimalTransportMatcher,
    QuantileAlignmentClassifier,
    align_scores,
    fairness_path,
    fit_adjustment,
)
from fairmatch.exceptions import (
    CouplingError,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
)
from fairmatch.measures import demographic_parity_gap, ks_parity_gap
from fairmatch.people.encoding import TableEncoder

COLUMNS = ["wage", "debt", "age", "visits"]
FOLDS = list(StratifiedKFold(3).split(np.zeros(300), people(300)[1]))


@pytest.fixture(scope="module")
def rows():
    return people(300)


def with_group(X, group):
    return np.column_stack([X, group])


def unseen(X, y):
    scores = np.empty(len(y))
    for train, test in FOLDS:
        scores[test] = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    return scores


def align(**more):
    return QuantileAlignmentClassifier(LogisticRegression(), cv=FOLDS, **more)


def smooth(**more):
    return MatchSmoothingClassifier(LogisticRegression(), cv=FOLDS, **more)


class TestAlignment:
    def test_scores_are_aligned_by_what_models_say_of_unseen_rows(self, rows):
        X, y, group = rows
        model = align(strength=0.7).fit(X, y, sensitive_features=group)
        seen = with_group(X, group)
        plain = LogisticRegression().fit(seen, y).predict_proba(seen)[:, 1]
        expected = model.adjustment_.apply(plain, group)
        assert_array_equal(model.predict_proba(X, sensitive_features=group)[:, 1], expected)
        alone = align_scores(unseen(seen, y), group, strength=0.7)
        assert_array_equal(model.adjustment_.apply(unseen(seen, y), group), alone)

    def test_strength_0_is_the_model_itself(self, rows):
        X, y, group = rows
        for how in ("align", "threshold"):
            model = align(strength=0.0, decisions=how).fit(X, y, sensitive_features=group)
            plain = LogisticRegression().fit(with_group(X, group), y)
            assert_array_equal(
                model.predict(X, sensitive_features=group), plain.predict(with_group(X, group))
            )

    def test_a_fitted_model_is_taken_as_it_is(self, rows):
        X, y, group = rows
        fitted = LogisticRegression().fit(X, y)
        model = QuantileAlignmentClassifier(fitted, prefit=True).fit(X, y, sensitive_features=group)
        assert model.estimator_ is fitted
        assert clone(model).estimator is fitted
        scores = model.predict_proba(X, sensitive_features=group)[:, 1]
        assert_array_equal(scores, align_scores(fitted.predict_proba(X)[:, 1], group))
        remaining = model.adjustment_.parts.remaining_gap
        # Rounding may part two people of equal scores.
        assert ks_parity_gap(None, scores, sensitive_features=group) <= remaining + 1 / 100
        assert remaining < 0.02

    def test_thresholds_are_the_best_ones_within_their_gap(self, rows):
        X, y, group = rows
        scores = unseen(with_group(X, group), y)
        plain_gap = demographic_parity_gap(None, scores, sensitive_features=group)
        model = align(decisions="threshold", strength=0.5).fit(X, y, sensitive_features=group)
        best = fit_adjustment(
            scores, group, y_true=y, max_gap=0.5 * plain_gap, decisions="threshold"
        )
        assert_array_equal(model.adjustment_.parts.thresholds, best.parts.thresholds)
        decided = model.adjustment_.apply(scores, group) >= 0.5
        assert_array_equal(decided, best.apply(scores, group) >= 0.5)
        assert demographic_parity_gap(None, decided, sensitive_features=group) <= 0.5 * plain_gap

    def test_equalised_odds_is_for_thresholds(self, rows):
        X, y, group = rows
        given = {"criterion": "equalized_odds"}
        with pytest.raises(InputError, match="decisions='threshold', whose thresholds"):
            align(**given).fit(X, y, sensitive_features=group)
        model = align(decisions="threshold", **given).fit(X, y, sensitive_features=group)
        assert model.adjustment_.parts.criterion == "equalized_odds"

    def test_a_path_fits_the_model_once(self, rows, monkeypatch):
        X, y, group = rows
        fits = []
        fit = LogisticRegression.fit
        monkeypatch.setattr(
            LogisticRegression, "fit", lambda self, *a, **k: fits.append(1) or fit(self, *a, **k)
        )
        strengths = [0.0, 0.5, 1.0]
        path = fairness_path(
            X, y, sensitive_features=group, fairness_weights=strengths, estimator=align()
        )
        assert len(fits) == len(FOLDS) + 1
        curve = path.curve(X, y, sensitive_features=group)
        assert curve.wasserstein_parity_gap.is_monotonic_decreasing
        for strength, model in zip(strengths, path.models, strict=True):
            alone = align(strength=strength).fit(X, y, sensitive_features=group)
            assert model.strength == strength
            assert_array_equal(
                model.predict_proba(X, sensitive_features=group),
                alone.predict_proba(X, sensitive_features=group),
            )

    def test_groups_are_needed_at_prediction(self, rows):
        X, y, group = rows
        with pytest.raises(InputError, match="sensitive_at_prediction=False was given"):
            align(sensitive_at_prediction=False).fit(X, y, sensitive_features=group)
        model = align().fit(X, y, sensitive_features=group)
        with pytest.raises(InputError, match="predict needs the group of every row") as caught:
            model.predict(X)
        assert "sensitive_at_prediction" not in str(caught.value)
        with pytest.raises(GroupError, match="holds 7; the model knows"):
            model.predict(X, sensitive_features=np.where(group == 1, 7, group))

    def test_small_groups_are_left_alone_if_asked(self, rows):
        X, y, group = rows
        three = np.where(np.arange(len(y)) < 6, "few", np.where(group == 1, "m", "f"))
        model = QuantileAlignmentClassifier(LogisticRegression(), small_groups=("ignore", 10)).fit(
            X, y, sensitive_features=three
        )
        assert model.adjustment_.labels == ("f", "m")
        moved = model.predict_proba(X, sensitive_features=three)[:, 1]
        seen = np.column_stack([X, *(three == name for name in model.groups_[1:])])
        plain = model.estimator_.predict_proba(seen)[:, 1]
        assert_array_equal(moved[three == "few"], plain[three == "few"])
        assert not np.allclose(moved[three == "m"], plain[three == "m"])

    def test_what_a_fitted_model_lacks_is_named(self, rows):
        X, y, group = rows
        frame = pd.DataFrame(X, columns=COLUMNS)
        fitted = LogisticRegression().fit(frame, y)

        def fit(table, labels=y, model=fitted):
            wrapper = QuantileAlignmentClassifier(model, prefit=True)
            return wrapper.fit(table, labels, sensitive_features=group)

        with pytest.raises(InputError, match="was trained on the columns 'wage'"):
            fit(frame.rename(columns={"wage": "pay"}))
        with pytest.raises(InputError, match="was trained on 4 columns, but X has 3"):
            fit(X[:, :3])
        with pytest.raises(LabelError, match=r"knows the classes.*y holds"):
            fit(frame, np.where(y == 1, "yes", "no"))
        with pytest.raises(InputError, match="LogisticRegression, is not fitted"):
            fit(frame, model=LogisticRegression())


class TestSmoothing:
    @pytest.mark.parametrize("score_weight", [0.0, 5.0])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_targets_solve_the_system_and_the_learner_learns_them(
        self, rows, score_weight, weighted
    ):
        X, y, group = rows
        weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
        model = MatchSmoothingClassifier(
            LogisticRegression(), cv=FOLDS, fairness_weight=3.0, score_weight=score_weight
        ).fit(X, y, sensitive_features=group, sample_weight=weights)
        seen, eta = with_group(X, group), np.empty(len(y))
        for train, test in FOLDS:
            given = None if weights is None else weights[train]
            fold = LogisticRegression().fit(seen[train], y[train], sample_weight=given)
            eta[test] = fold.predict_proba(seen[test])[:, 1]
        points = TableEncoder(missing="encode").fit_transform(X)
        points = np.column_stack([points, np.sqrt(score_weight) * eta])
        matcher = OptimalTransportMatcher(tolerance=1e-3)
        coupling = matcher.match(points, group, sample_weight=weights)
        mass = np.ones(len(y)) if weights is None else weights
        mass = mass / mass.sum()
        gamma = coupling.to_sparse().toarray()
        gamma = gamma + gamma.T
        system = np.diag(mass) + 3.0 * (np.diag(gamma.sum(axis=1)) - gamma)
        targets = np.linalg.solve(system, mass * eta)
        assert_allclose(model.targets_, targets, atol=1e-8)
        twice = LogisticRegression().fit(
            np.vstack([seen, seen]),
            np.repeat([1, 0], len(y)),
            sample_weight=np.concatenate([targets, 1.0 - targets])
            * np.tile(mass * len(y), 2)
            * (1.0 if weights is None else weights.mean()),
        )
        assert_allclose(
            model.predict_proba(X, sensitive_features=group), twice.predict_proba(seen), atol=1e-4
        )

    def test_weight_0_is_the_learner_itself(self, rows):
        X, y, group = rows
        model = smooth(fairness_weight=0).fit(X, y, sensitive_features=group)
        plain = LogisticRegression().fit(with_group(X, group), y)
        assert_array_equal(
            model.predict_proba(X, sensitive_features=group),
            plain.predict_proba(with_group(X, group)),
        )

    def test_a_ready_coupling_is_used(self, rows):
        X, y, group = rows
        points = TableEncoder(missing="encode").fit_transform(X)
        coupling = OptimalTransportMatcher(tolerance=1e-3).match(points, group)
        ready = smooth().fit(X, y, sensitive_features=group, coupling=coupling)
        own = smooth(score_weight=0.0).fit(X, y, sensitive_features=group)
        assert_array_equal(ready.targets_, own.targets_)
        with pytest.raises(CouplingError):
            smooth().fit(X, y, sensitive_features=group, coupling=coupling.mass)

    def test_a_path_shares_scores_and_coupling(self, rows, monkeypatch):
        X, y, group = rows
        made = []
        match = OptimalTransportMatcher.match_people
        monkeypatch.setattr(
            OptimalTransportMatcher,
            "match_people",
            lambda self, *a, **k: made.append(1) or match(self, *a, **k),
        )
        weights = [0.0, 1.0, 20.0]
        path = fairness_path(
            X, y, sensitive_features=group, fairness_weights=weights, estimator=smooth()
        )
        assert len(made) == 1
        for weight, model in zip(weights, path.models, strict=True):
            alone = smooth(fairness_weight=weight).fit(X, y, sensitive_features=group)
            assert_array_equal(model.targets_, alone.targets_)
            assert_array_equal(
                model.predict_proba(X, sensitive_features=group),
                alone.predict_proba(X, sensitive_features=group),
            )

    def test_without_the_group_at_prediction(self, rows):
        X, y, group = rows
        frame = pd.DataFrame(X, columns=COLUMNS).assign(sex=group)
        model = smooth(sensitive_column="sex", sensitive_at_prediction=False).fit(frame, y)
        assert model.estimator_.n_features_in_ == 4
        other = frame.assign(sex=1 - group)
        assert_array_equal(model.predict_proba(frame), model.predict_proba(other))
        assert_array_equal(
            model.predict_proba(frame), model.predict_proba(frame.drop(columns="sex"))
        )

    def test_the_matched_gap_needs_a_matching_of_features_alone(self, rows):
        X, y, group = rows
        given = {"max_gap": 1.0, "gap_measure": "matched_parity_gap", "cv": 3, "random_state": 0}
        with pytest.raises(InputError, match="score_weight=5 people are matched on scores"):
            smooth().set_params(**given).fit(X, y, sensitive_features=group)
        model = smooth().set_params(score_weight=0, **given, fairness_weight=[1.0])
        model.fit(X, y, sensitive_features=group)
        assert 0.0 < model.validation_curve_.matched_parity_gap[0] < 1.0

    def test_learners_that_cannot_are_named(self, rows):
        X, y, group = rows
        for learner, message in (
            (KNeighborsClassifier(), "takes no sample_weight"),
            (Perceptron(), "has no predict_proba"),
            (LogisticRegression, "must be a classifier"),
        ):
            with pytest.raises(InputError, match=message):
                MatchSmoothingClassifier(learner).fit(X, y, sensitive_features=group)
        with pytest.raises(InputError, match="score_weight must be a number"):
            smooth(score_weight=-1).fit(X, y, sensitive_features=group)


def boosters():
    """Boosters, each with the way to keep it quiet; other libraries where they are installed."""
    yield lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, random_state=0, n_jobs=1)
    yield pytest.param(("xgboost", "XGBClassifier", {"n_jobs": 1}), id="xgboost")
    yield pytest.param(
        (
            "catboost",
            "CatBoostClassifier",
            {"verbose": False, "thread_count": 1, "allow_writing_files": False},
        ),
        id="catboost",
    )


def made(learner):
    if not isinstance(learner, tuple):
        return learner
    library, name, quiet = learner
    module = pytest.importorskip(library, reason=f"pip install 'fairmatch[boosters]' for {library}")
    return getattr(module, name)(n_estimators=20, random_state=0, **quiet)


@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(),
        RandomForestClassifier(20, random_state=0),
        HistGradientBoostingClassifier(max_iter=20, random_state=0),
        *boosters(),
        make_pipeline(
            make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler()),
            LogisticRegression(),
        ),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_any_learner_becomes_fairer(learner):
    X, y, group = people(400, 1)
    frame = pd.DataFrame(X, columns=COLUMNS)
    frame["job"] = np.where(frame.wage > 0.5, 1.0, 0.0)  # numbers, which every learner takes
    learner = made(learner)
    given = {"sensitive_features": group}
    path = fairness_path(
        frame, y, **given, fairness_weights=[0.0, 50.0],
        estimator=MatchSmoothingClassifier(learner, cv=2),
    )  # fmt: skip
    curve = path.curve(frame, y, **given)
    assert curve.wasserstein_parity_gap[1] < 0.5 * curve.wasserstein_parity_gap[0]
    assert 0.0 < curve.acceptance_rate[1] < 1.0
    new, _, other = people(400, 2)
    new = pd.DataFrame(new, columns=COLUMNS).assign(job=lambda table: (table.wage > 0.5) + 0.0)
    scores = [
        QuantileAlignmentClassifier(learner, cv=2, strength=strength)
        .fit(frame, y, **given)
        .predict_proba(new, sensitive_features=other)[:, 1]
        for strength in (0.0, 1.0)
    ]
    gaps = [ks_parity_gap(None, score, sensitive_features=other) for score in scores]
    assert gaps[1] < 0.6 * gaps[0]


class TestTables:
    def test_the_learner_sees_the_whole_table_where_the_groups_are_a_column_of_it(self, rows):
        X, y, group = rows
        frame = pd.DataFrame(X, columns=COLUMNS)
        frame.insert(1, "sex", np.where(group == 1, "m", "f"))
        learner = make_pipeline(
            make_column_transformer((OneHotEncoder(), ["sex"]), remainder=StandardScaler()),
            LogisticRegression(),
        )
        for kind in (QuantileAlignmentClassifier, MatchSmoothingClassifier):
            model = kind(learner, sensitive_column="sex", cv=3).fit(frame, y)
            assert list(model.estimator_.feature_names_in_) == list(frame.columns)
            assert model.score(frame, y) > 0.7
            other = frame.assign(sex=np.where(group == 1, "f", "m"))
            assert not np.allclose(model.predict_proba(frame), model.predict_proba(other))
            with pytest.raises(InputError, match="lacks 'debt'"):
                model.predict(frame.drop(columns="debt"))
            with pytest.raises(ValueError, match="order"):
                model.predict(frame[[*COLUMNS, "sex"]])

    def test_polars_is_as_good_as_pandas(self, rows):
        X, y, group = rows
        frame = pd.DataFrame(X, columns=COLUMNS)
        learner = HistGradientBoostingClassifier(max_iter=5, random_state=0)
        for kind in (QuantileAlignmentClassifier, MatchSmoothingClassifier):
            scores = [
                kind(learner, cv=2)
                .fit(table, y, sensitive_features=group)
                .predict_proba(table, sensitive_features=group)
                for table in (frame, pl.from_pandas(frame), frame.to_numpy())
            ]
            assert_array_equal(scores[0], scores[1])
            assert_array_equal(scores[0], scores[2])

    def test_searched_over(self, rows):
        X, y, group = rows
        table = with_group(X, group)
        for kind, grid in (
            (QuantileAlignmentClassifier, {"strength": [0.0, 1.0]}),
            (MatchSmoothingClassifier, {"estimator__C": [0.1, 1.0]}),
        ):
            model = kind(LogisticRegression(), sensitive_column=-1, cv=3)
            search = GridSearchCV(model, grid, cv=2).fit(table, y)
            assert search.best_score_ > 0.7

    def test_bad_tables_are_named(self, rows):
        X, y, group = rows
        with pytest.raises(InputError, match="sparse"):
            align().fit(sparse.csr_array(X), y, sensitive_features=group)
        with pytest.raises(InputError, match="rows"):
            align().fit(X[:-1], y, sensitive_features=group)
        model = align().fit(X, y, sensitive_features=group)
        with pytest.raises(InputError, match="X has 3 features"):
            model.predict(X[:, :3], sensitive_features=group)
        with pytest.raises(InputError, match=r"299 rows|has 299"):
            model.predict(X, sensitive_features=group[:-1])
        with pytest.raises(InputError, match=r"strength must be a number in \[0, 1\]"):
            align(strength=2).fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("how", ["align", "threshold", "smooth"])
def test_a_bound_is_kept_on_the_rows_held_out(how):
    X, y, group = people(900, 2)
    learner = LogisticRegression()
    model = (
        MatchSmoothingClassifier(learner, max_gap=0.15, random_state=0)
        if how == "smooth"
        else QuantileAlignmentClassifier(learner, max_gap=0.15, decisions=how, random_state=0)
    ).fit(X, y, sensitive_features=group)
    curve = model.validation_curve_
    assert curve.demographic_parity_gap[0] > 0.2
    kept = curve[curve.fairness_weight == model.fairness_weight_].iloc[0]
    assert kept.demographic_parity_gap <= 0.15
    sure = curve[curve.expected_gap + curve.gap_error <= 0.15]
    if how == "smooth":  # a fifth of the rows: no margin, so the fairest within a standard error
        assert len(sure) == 0
        assert kept.expected_gap + kept.gap_error <= 0.2
    else:
        assert kept.fairness_weight == sure.fairness_weight.min()


def test_a_bound_with_confidence_asks_for_more():
    X, y, group = people(900, 2)
    model = QuantileAlignmentClassifier(
        LogisticRegression(), max_gap=0.1, confidence=0.95, random_state=0
    )
    with pytest.warns(GapNotReachedWarning):  # 180 rows cannot show so much
        model.fit(X, y, sensitive_features=group)
    curve = model.validation_curve_
    tested = curve.dropna()
    assert list(tested.fairness_weight) == [1.0]  # the fairest fails, so no other is tested
    assert (tested.demographic_parity_gap_limit > 0.1).all()


def test_three_groups_and_two_attributes():
    X, y, group = people(600, 3)
    frame = pd.DataFrame({"sex": np.where(group == 1, "m", "f"), "old": X[:, 2] > 0.5})
    for kind in (QuantileAlignmentClassifier, MatchSmoothingClassifier):
        model = kind(LogisticRegression(), cv=3).fit(X, y, sensitive_features=frame)
        assert len(model.groups_) == 4
        plain = kind(LogisticRegression(), cv=3)
        plain.set_params(**{plain._weight_name: 0.0}).fit(X, y, sensitive_features=frame)
        gaps = [
            demographic_parity_gap(None, m.predict(X, sensitive_features=frame),
                                   sensitive_features=frame)
            for m in (model, plain)
        ]  # fmt: skip
        assert gaps[0] < gaps[1]
