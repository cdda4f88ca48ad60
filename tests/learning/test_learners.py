"""Other people's learners, each spoken to in its own way."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from synthetic import people

from fairmatch import MatchSmoothingClassifier, QuantileAlignmentClassifier
from fairmatch.exceptions import InputError, LabelError
from fairmatch.learning.learners import (
    Learner,
    check_columns,
    cross_entropy_learner,
    read_folds,
    takes_weights,
)
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import NUMBER, PROBABILITY
from fairmatch.people.people import Labels, People

LEARNERS = {
    "logistic": LogisticRegression(),
    "forest": RandomForestClassifier(20, random_state=0),
    "histogram": HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "lightgbm": lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, random_state=0),
    "pipeline": make_pipeline(
        make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler()),
        LogisticRegression(),
    ),
}


def hard(y):
    return (y == "yes").astype(float)


def table(n=300):
    X, y, group = people(n, 0)
    frame = pd.DataFrame(X, columns=["wage", "debt", "age", "visits"])
    return frame, np.where(y == 1, "yes", "no"), group


def learner_of(estimator, classes=("no", "yes")):
    return Learner(estimator, PROBABILITY, np.array(classes))


def given(name, frame):
    jobs = np.where(frame.wage > 0.5, "cook", "nurse")
    return frame.assign(job=jobs) if name == "pipeline" else frame.to_numpy()


@pytest.mark.parametrize("name", LEARNERS)
def test_soft_targets_are_learned(name):
    frame, y, _ = table()
    X = given(name, frame)
    learner = learner_of(LEARNERS[name])
    learner.check(weighted=True)
    targets = 1.0 / (1.0 + np.exp(-3.0 * (frame["wage"].to_numpy() - frame["wage"].mean())))
    scores = learner.raw(learner.softly(X, hard(y), None)(targets), X)
    assert np.corrcoef(scores, targets)[0, 1] > 0.9
    assert abs(scores.mean() - targets.mean()) < 0.03
    assert scores.min() >= 0.0
    assert scores.max() <= 1.0


def test_hard_targets_are_labels():
    frame, y, _ = table()
    X, weights = frame.to_numpy(), np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    learner = learner_of(LogisticRegression())
    soft = learner.raw(learner.softly(X, hard(y), weights)(hard(y)), X)
    plain = learner.raw(learner.fit(X, hard(y), weights), X)
    assert np.allclose(soft, plain, atol=1e-4)


def test_cross_entropy_on_hard_targets_is_lightgbms_own_objective():
    frame, y, _ = table()
    X, learner = frame.to_numpy(), learner_of(LEARNERS["lightgbm"])
    soft = learner.raw(learner.softly(X, hard(y), None)(hard(y)), X)
    assert np.allclose(soft, learner.raw(learner.fit(X, hard(y), None), X), atol=1e-6)


def test_cross_entropy_is_used_only_where_it_is_the_same():
    made = cross_entropy_learner(lightgbm.LGBMClassifier(num_leaves=7))
    assert made.get_params()["num_leaves"] == 7
    assert made.get_params()["objective"] == "cross_entropy"
    assert cross_entropy_learner(lightgbm.LGBMClassifier(class_weight="balanced")) is None
    assert cross_entropy_learner(lightgbm.LGBMClassifier(scale_pos_weight=3)) is None
    assert cross_entropy_learner(lightgbm.LGBMClassifier(objective="cross_entropy_lambda")) is None
    assert cross_entropy_learner(LogisticRegression()) is None


@pytest.mark.parametrize(
    ("library", "name"), [("xgboost", "XGBClassifier"), ("catboost", "CatBoostClassifier")]
)
def test_other_boosters_learn_soft_targets(library, name):
    module = pytest.importorskip(library)
    frame, y, _ = table()
    X = frame.to_numpy()
    quiet = {"verbose": False, "allow_writing_files": False} if library == "catboost" else {}
    learner = learner_of(getattr(module, name)(n_estimators=20, **quiet), classes=(0, 1))
    learner.check(weighted=True)
    targets = np.clip(X[:, 0], 0.0, 1.0)
    scores = learner.raw(learner.softly(X, hard(y), None)(targets), X)
    assert np.corrcoef(scores, targets)[0, 1] > 0.9


def test_a_regressor_learns_targets_and_its_scores_stay_probabilities():
    frame, y, _ = table()
    X, labels = frame.to_numpy(), hard(y)
    learner = learner_of(LinearRegression(), classes=(0, 1))
    learner.check(weighted=True)
    scores = learner.raw(learner.softly(X, labels, None)(labels), X)
    assert np.array_equal(scores, np.clip(LinearRegression().fit(X, labels).predict(X), 0, 1))


def test_weights_reach_the_last_step_of_a_pipeline():
    frame, y, _ = table()
    X, weights = frame.to_numpy(), np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    pipeline = make_pipeline(StandardScaler().fit(X), LogisticRegression())
    weighted = learner_of(pipeline).fit(X, hard(y), weights)
    alone = LogisticRegression().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    assert np.array_equal(weighted.predict_proba(X), alone.predict_proba(weighted[0].transform(X)))


def test_unseen_scores_are_of_models_that_have_not_seen_the_row():
    frame, y, group = table()
    X = frame.to_numpy()
    strata = 2 * (y == "yes") + group
    folds = read_folds(4, X, y, strata)
    people = People(read_groups(group), labels=Labels(hard(y), ("no", "yes")))
    scores = learner_of(LogisticRegression()).unseen(X, people, 4)
    for train, test in folds:
        alone = LogisticRegression().fit(X[train], y[train]).predict_proba(X[test])[:, 1]
        assert np.array_equal(scores[test], alone)
        assert np.abs(np.bincount(strata[test], minlength=4) * 4 - np.bincount(strata)).max() <= 4
    with pytest.raises(InputError, match="rows out of every test part"):
        learner_of(LogisticRegression()).unseen(X, people, folds[:2])


def test_folds_are_read():
    frame, y, group = table(40)
    X, strata = frame.to_numpy(), 2 * (y == "yes") + group
    assert len(read_folds(KFold(3), X, y, strata)) == 3
    rare = np.where(np.arange(40) == 0, 9, strata)  # one row alone in its stratum
    assert sorted(np.concatenate([test for _, test in read_folds(5, X, y, rare)])) == list(
        range(40)
    )
    with pytest.raises(InputError, match="cv must be at least 2"):
        read_folds(1, X, y, strata)
    with pytest.raises(LabelError, match="A class has 1 rows, fewer than cv=5"):
        read_folds(5, X, np.arange(40) == 0, strata)


def test_learners_that_cannot_are_named():
    with pytest.raises(InputError, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        learner_of(make_pipeline(StandardScaler(), KNeighborsClassifier())).check(weighted=True)
    learner_of(KNeighborsClassifier()).check()
    with pytest.raises(InputError, match="Perceptron has no predict_proba"):
        learner_of(Perceptron()).check()
    for wrong in (LogisticRegression, None, "tree"):
        with pytest.raises(InputError, match="estimator must be a classifier"):
            learner_of(wrong).check()
        with pytest.raises(InputError, match="estimator must be a regressor"):
            Learner(wrong, NUMBER).check()
    assert takes_weights(GridSearchCV(LogisticRegression(), {"C": [1]}))
    assert not takes_weights(GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}))


class Copying(LogisticRegression):
    """Copies a list that it is given, as CatBoost does: scikit-learn refuses to clone that."""

    def __init__(self, columns=(), C=1.0):
        self.columns = list(columns)
        super().__init__(C=C)

    def get_params(self, deep=True):
        return {"columns": list(self.columns), "C": self.C}


class Bare:
    """Has what is needed and no more."""

    def fit(self, X, y, sample_weight=None):
        self.model = LogisticRegression().fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(X)


@pytest.mark.parametrize("kind", [QuantileAlignmentClassifier, MatchSmoothingClassifier])
@pytest.mark.parametrize(
    ("odd", "piped"),
    [(Copying(["age"]), False), (Copying(["age"]), True), (Bare(), False)],
    ids=["copying", "copying in a pipeline", "bare"],
)
def test_learners_that_scikit_learn_cannot_clone(kind, odd, piped):
    frame, y, group = table()

    def scores(learner):
        model = kind(make_pipeline(StandardScaler(), learner) if piped else learner, cv=2)
        model = clone(model).fit(frame.to_numpy(), y, sensitive_features=group)
        return model.predict_proba(frame.to_numpy(), sensitive_features=group)

    assert np.array_equal(scores(odd), scores(LogisticRegression()))
    assert not hasattr(odd, "classes_")


def test_names_of_columns_are_known_by_either_word():
    frame, y, _ = table(40)
    model = LogisticRegression().fit(frame, y)
    with pytest.raises(InputError, match="on the columns 'wage', 'debt', 'age', 'visits', but X"):
        check_columns(model, frame.rename(columns={"wage": "pay"}))
    arrays = LogisticRegression().fit(frame.to_numpy(), y)
    arrays.feature_names_ = list("0123")  # of an array
    check_columns(arrays, frame)
    arrays.feature_names_ = ["pay", "debt", "age", "visits"]
    with pytest.raises(InputError, match="on the columns 'pay'"):
        check_columns(arrays, frame)


def test_an_unfitted_model_of_another_library_is_not_taken_for_fitted():
    class Boosted(Copying):
        classes_ = None  # as CatBoost has it before it is fitted

    with pytest.raises(InputError, match="Boosted, is not fitted"):
        learner_of(Boosted()).check(prefit=True)


def test_other_classes_are_named():
    frame, y, _ = table()
    model = LogisticRegression().fit(frame, y)
    with pytest.raises(LabelError, match=r"knows the classes.*y holds"):
        learner_of(model, classes=(0, 1)).raw(model, frame)


def test_numbers_are_learned_in_their_own_unit():
    frame, _, _ = table()
    X, standard = frame.to_numpy()[:, 1:], frame["wage"].to_numpy()
    learner = Learner(LinearRegression(), NUMBER, mean=100.0, scale=7.0)
    alone = LinearRegression().fit(X, 100.0 + 7.0 * standard)
    for model in (learner.fit(X, standard, None), learner.softly(X, standard, None)(standard)):
        assert np.array_equal(learner.raw(model, X), alone.predict(X))
    assert np.allclose(learner.standard(learner.own_unit(standard)), standard)
    with pytest.raises(InputError, match=r"predicts numbers of shape \(300, 2\)"):
        learner.raw(LinearRegression().fit(X, X[:, :2]), X)


def test_an_error_of_the_wrapped_estimator_says_whose_it_is():
    table = pd.DataFrame({"job": ["cook", "nurse"] * 30, "years": np.arange(60.0)})
    model = QuantileAlignmentClassifier(LogisticRegression())
    with pytest.raises(ValueError, match=r"cook|nurse") as raised:
        model.fit(table, np.arange(60) % 3 == 0, sensitive_features=np.repeat(["f", "m"], 30))
    (note,) = raised.value.__notes__
    assert note.startswith("LogisticRegression is the wrapped estimator")
