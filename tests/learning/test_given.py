"""Models that compare people within strata, and by what makes people alike."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fairmatch import (
    FTMBoostingClassifier,
    FTMBoostingRegressor,
    FTMClassifier,
    FTMRegressor,
    MatchSmoothingClassifier,
    NeuralNetwork,
    OptimalTransportMatcher,
    QuantileAlignmentClassifier,
    load,
    nearest_fair_matching,
)
from fairmatch.exceptions import ColumnError, FairmatchWarning, InputError
from fairmatch.learning.learners import WholeTableReader
from fairmatch.learning.reading import Reader, encoded
from fairmatch.measures import conditional_gaps
from fairmatch.people.outcome import PROBABILITY
from fairmatch.people.similarity import read_similarity
from fairmatch.people.strata import POOLED, pool_strata

TREES = LGBMClassifier(n_estimators=40, n_jobs=1)
LINEAR = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["title"]), ("passthrough", ["merit"])
    ),
    LogisticRegression(),
)


def staff(n_rows=2000, seed=0):
    """Return people whose outcome depends on title, merit, and within a title on sex."""
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], n_rows)
    title = np.where(random.random(n_rows) < np.where(sex == "f", 0.3, 0.6), "head", "clerk")
    merit = random.normal(size=n_rows)
    noise = random.integers(4, size=(n_rows, 3))
    chance = merit + (title == "head") + np.where(title == "head", 1.0, -0.8) * (sex == "m")
    y = (chance + random.logistic(size=n_rows) > 0.5).astype(int)
    X = pd.DataFrame({"title": title, "merit": merit})
    return X.join(pd.DataFrame(noise, columns=["z0", "z1", "z2"]).astype(str)), y, sex


def absolute(model, data):
    X, y, sex = data
    scores = model.predict_proba(X, sensitive_features=sex)[:, 1]
    return conditional_gaps(y, scores, sensitive_features=sex, given=X["title"])[0].absolute


MODELS = {
    "trees": FTMBoostingClassifier(TREES, fairness_weight=2.0, random_state=0),
    "network": FTMClassifier(NeuralNetwork(epochs=8), fairness_weight=2.0, random_state=0),
    "smoothing": MatchSmoothingClassifier(LINEAR, fairness_weight=20.0, cv=2),
    "alignment": QuantileAlignmentClassifier(LINEAR, cv=2),
    "thresholds": QuantileAlignmentClassifier(LINEAR, decisions="threshold", cv=2),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_given_the_title_treats_people_of_a_title_alike(name):
    train, test = staff(), staff(seed=1)
    plain = FTMBoostingClassifier(TREES, fairness_weight=0.0, random_state=0)
    plain.fit(train[0], train[1], sensitive_features=train[2])
    assert absolute(plain, test) > 0.15
    own = MODELS[name].set_params(given=["title"]).fit(*train[:2], sensitive_features=train[2])
    assert absolute(own, test) < (0.15 if name == "smoothing" else 0.09)


@pytest.mark.parametrize("name", MODELS)
def test_one_stratum_is_the_model_without_a_factor_to_the_bit(name):
    X, y, sex = staff(600)
    X["same"] = "x"
    fitted = [
        MODELS[name].set_params(given=given).fit(X, y, sensitive_features=sex)
        for given in (None, "same")
    ]
    first, second = (model.predict_proba(X, sensitive_features=sex) for model in fitted)
    assert np.array_equal(first, second)


def test_the_bound_is_on_the_mean_absolute_gap_within_strata():
    X, y, sex = staff(3000)
    model = FTMBoostingClassifier(TREES, given="title", max_gap=0.08, random_state=0)
    model.fit(X, y, sensitive_features=sex)
    again = model.path_.curve(X, y, sensitive_features=sex)
    place = list(again.fairness_weight).index(model.fairness_weight_)
    assert model.validation_curve_.demographic_parity_gap[place] <= 0.08
    scores = model.predict_proba(X, sensitive_features=sex)[:, 1]
    (own,) = conditional_gaps(y, scores, sensitive_features=sex, given=X["title"])
    assert again.demographic_parity_gap[place] == pytest.approx(own.absolute)
    assert abs(own.marginal) > own.absolute  # the title itself may make a difference


def test_couplings_of_a_fit_stay_within_strata_and_pool_small_ones():
    X, y, sex = staff(400)
    X["title"] = np.where(np.arange(400) % 50 == 0, "rare", X["title"])
    reader = Reader("m", PROBABILITY, given=["title"])
    people = reader.fit(reader.read(X, y, sex, None))
    assert people.strata.labels == ("title clerk", "title head", "title rare", POOLED)
    assert np.array_equal(people.strata.values == 3, X["title"] == "rare")
    found = FTMBoostingClassifier(TREES, transport="marginal", given=["title"])
    found.reader_ = reader
    coupling = found._transport().match(people)
    titles = X["title"].to_numpy()
    assert (titles[coupling.source_index] == titles[coupling.target_index]).all()
    raw = reader.read(X, y, sex, None)
    assert "rare" in raw.strata.labels[2]  # nothing is pooled to measure
    assert pool_strata(raw.strata, raw.groups).tolist() == [0, 1, 3]


def test_new_strata_are_adjusted_like_everybody():
    X, y, sex = staff(800)
    model = QuantileAlignmentClassifier(LINEAR, cv=2, given=["title"])
    model.fit(X, y, sensitive_features=sex)
    plain = QuantileAlignmentClassifier(LINEAR, cv=2).fit(X, y, sensitive_features=sex)
    new = X.assign(title="new")
    one, other = (own.predict_proba(new, sensitive_features=sex) for own in (model, plain))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("similarity", [["merit"], {"merit": 2.0, "title": 0.5}, "relevance"])
@pytest.mark.parametrize("kind", [Reader, WholeTableReader])
def test_estimators_match_on_what_the_matcher_matches_on(kind, similarity):
    X, y, sex = staff(300)
    more = {"encoder": "table"} if kind is WholeTableReader else {}
    reader = kind("m", PROBABILITY, similarity=similarity, **more)
    people = reader.fit(reader.read(X, y, sex, None))
    wanted = read_similarity(similarity, X, people.labels).points(X)
    assert encoded(people).points.dense() == pytest.approx(wanted.dense())
    assert reader.attributes()["similarity_"].keys() <= set(X)


def test_relevance_is_shown_and_leaves_out_what_decides_nothing():
    X, y, sex = staff()
    model = FTMBoostingClassifier(TREES, similarity="relevance", random_state=0)
    model.fit(X, y, sensitive_features=sex)
    assert set(model.similarity_) == {"title", "merit"}
    wages = FTMBoostingRegressor(
        LGBMRegressor(n_estimators=10, n_jobs=1), similarity="relevance", given="title"
    )
    wages.fit(X, 10.0 + X["merit"], sensitive_features=sex)
    assert set(wages.similarity_) == {"merit"}


class Recorder:
    """A matcher that keeps the points and groups that it gets."""

    def __init__(self):
        self.seen = []

    def __deepcopy__(self, memo):
        return self  # a clone of a model keeps its records here

    def match(self, X, sensitive_features, y=None, *, sample_weight=None):
        self.seen.append((X, np.asarray(sensitive_features)))
        return OptimalTransportMatcher().match(X, sensitive_features)


NETWORK = NeuralNetwork(epochs=2)
ALIKE = {
    "trees": FTMBoostingClassifier(TREES, fairness_weight=2.0, random_state=0),
    "network": FTMClassifier(NETWORK, fairness_weight=2.0, random_state=0),
    "numbers": FTMRegressor(NETWORK, fairness_weight=2.0, random_state=0),
    "smoothing": MatchSmoothingClassifier(
        LINEAR, fairness_weight=2.0, score_weight=0.0, cv=2, random_state=0
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_an_embedding_says_who_is_alike(name):
    X, y, sex = staff(300)
    embedding = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    matcher = OptimalTransportMatcher()
    own = clone(ALIKE[name]).set_params(transport=matcher, similarity=embedding)
    own.fit(X, y, sensitive_features=sex)
    ready = clone(ALIKE[name]).set_params(transport=matcher)
    coupling = matcher.match(X, sex, similarity=embedding)
    ready.fit(X, y, sensitive_features=sex, coupling=coupling)
    scores = [m.predict(X, sensitive_features=sex) for m in (own, ready)]
    assert np.array_equal(*scores)


@pytest.mark.filterwarnings("ignore::fairmatch.exceptions.FairmatchWarning")
@pytest.mark.parametrize("name", ALIKE)
def test_rows_of_an_embedding_go_with_the_rows_that_are_held_out(name):
    X, y, sex = staff(300)
    embedding = np.column_stack([sex == "f", np.arange(300)]).astype(np.float32)
    matcher, bound = Recorder(), {"max_gap": 0.3, "fairness_weight": [0.5, 1.0]}
    bound |= {"max_gap": 3.0} if name == "numbers" else {}
    model = clone(ALIKE[name]).set_params(transport=matcher, similarity=embedding, **bound)
    weight = np.where(np.arange(300) % 7 == 0, 0.0, 1.0)  # these rows are dropped
    model.fit(X, y, sensitive_features=sex, sample_weight=weight)
    assert min(len(points) for points, _ in matcher.seen) < weight.sum()
    for points, groups in matcher.seen:
        assert np.array_equal(points[:, 0] == 1.0, groups == "f")
        assert len(np.unique(points[:, 1])) == len(points)
        assert (points[:, 1] % 7 > 0).all()


def test_an_embedding_is_not_copied_and_not_saved(tmp_path):
    X, y, sex = staff(300)
    embedding = np.random.default_rng(0).random((300, 3), dtype=np.float32)
    reader = Reader("m", PROBABILITY, similarity=embedding)
    people = reader.fit(reader.read(X, y, sex, None))
    assert np.shares_memory(encoded(people).points.numbers, embedding)
    assert encoded(people).points.take([3, 1]).numbers.dtype == np.float64
    for model in ALIKE.values():
        assert clone(clone(model).set_params(similarity=embedding)).similarity is embedding
    model = FTMBoostingClassifier(TREES, similarity=embedding, random_state=0)
    model.fit(X, y, sensitive_features=sex)
    again = load(model.save(tmp_path / "model"))
    assert np.array_equal(*(m.predict(X, sensitive_features=sex) for m in (model, again)))
    with pytest.raises(InputError, match="an array with one row per person"):
        again.fit(X, y, sensitive_features=sex)
    with pytest.raises(InputError, match="similarity has 300 rows where 200 were expected"):
        model.fit(X[:200], y[:200], sensitive_features=sex[:200])


def test_weights_of_columns_are_saved(tmp_path):
    X, y, sex = staff(300)
    model = FTMBoostingClassifier(TREES, similarity={"merit": 2, "title": 0.5}, random_state=0)
    model.fit(X, y, sensitive_features=sex)
    assert load(model.save(tmp_path / "model")).similarity == {"merit": 2.0, "title": 0.5}


def test_networks_match_on_predicted_scores():
    X, y, sex = staff(600)
    model = FTMClassifier(NeuralNetwork(epochs=2), transport="predicted", random_state=0)
    model.fit(X, y, sensitive_features=sex)
    people = model.reader_.fit(model.reader_.read(X, y, sex, None))
    points = model._transport()._points(people).numbers
    scores = points[:, -1] / 10.0
    assert ((scores >= 0.0) & (scores <= 1.0)).all()
    assert np.corrcoef(scores, y)[0, 1] > 0.3


def test_errors_and_warnings_say_what_to_do():
    X, y, sex = staff(300)
    known = {"sensitive_features": sex}
    with pytest.raises(InputError, match="must name columns of X"):
        FTMBoostingClassifier(TREES, given=X["title"]).fit(X, y, **known)
    with pytest.raises(ColumnError, match="Did you mean 'title'"):
        FTMBoostingClassifier(TREES, given="titel").fit(X, y, **known)
    with pytest.raises(InputError, match="no confidence limit"):
        FTMBoostingClassifier(TREES, given="title", max_gap=0.1, confidence=0.9).fit(X, y, **known)
    with pytest.warns(FairmatchWarning, match="strata are small"):
        FTMBoostingClassifier(
            TREES, given=["title", "z0"], max_gap=0.02, fairness_weight=[0.0, 20.0]
        ).fit(X, y, **known)


def with_codes(n_rows=400):
    """Return people whose job is a code, as a number and as a category."""
    X, y, sex = staff(n_rows)
    random = np.random.default_rng(1)
    jobs = np.sort(random.choice(np.arange(100, 9999), 25, replace=False))
    codes = X.assign(job=np.append(jobs, random.choice(jobs, n_rows - 25)))
    return codes, codes.assign(job=codes["job"].astype("category")), y, sex


@pytest.mark.parametrize("name", ["trees", "smoothing"])
def test_a_column_that_looks_like_codes_gets_a_notice(name):
    codes, categories, y, sex = with_codes()
    with pytest.warns(FairmatchWarning, match=r"'job' looks like codes.*X.astype\(\{'job': 'cat"):
        clone(ALIKE[name]).fit(codes, y, sensitive_features=sex)
    clone(ALIKE[name]).fit(categories, y, sensitive_features=sex)


def test_codes_are_categories_for_matchers():
    codes, categories, _, sex = with_codes(120)
    scores = np.random.default_rng(0).random(120)
    named = {"categorical": ["job"]}
    pairs = (
        (OptimalTransportMatcher().match(codes, sex, **named),
         OptimalTransportMatcher().match(categories, sex)),
        (nearest_fair_matching(scores, sex, codes, **named),
         nearest_fair_matching(scores, sex, categories)),
        (OptimalTransportMatcher().match(codes, sex, similarity=["job", "merit"], **named),
         OptimalTransportMatcher().match(categories, sex, similarity=["job", "merit"])),
    )  # fmt: skip
    for one, other in pairs:
        assert np.array_equal(one.source_index, other.source_index)
        assert np.array_equal(one.target_index, other.target_index)
    with pytest.raises(ColumnError, match="no column 'jobs'"):
        OptimalTransportMatcher().match(codes, sex, categorical=["jobs"])
