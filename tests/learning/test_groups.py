"""Any number of groups, several attributes and every criterion, for every learner."""

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_allclose, assert_array_equal
from paper.rivals import (
    AdversarialClassifier,
    ExponentiatedGradientClassifier,
    GapRegularizedBoostingClassifier,
    GapRegularizedClassifier,
    ReductionClassifier,
    UnconstrainedClassifier,
)
from paper.rivals.penalties import ConstraintViolation, SquaredMeanGap
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from synthetic import made, rows_of

from fairmatch import (
    Coupling,
    FTMBoostingClassifier,
    FTMClassifier,
    MatchSmoothingClassifier,
    OptimalTransportMatcher,
    fairness_path,
    load,
)
from fairmatch.exceptions import (
    CouplingError,
    GroupError,
    InputError,
    LabelError,
    SmallGroupWarning,
)
from fairmatch.learning.reading import Reader, settle_small_groups
from fairmatch.people.groups import read_criterion, read_groups

TREES = {"n_estimators": 20, "random_state": 0}
NETWORK = {"hidden_sizes": (8,), "epochs": 12, "learning_rate": 0.02, "random_state": 0}
MATCHED = [
    pytest.param(FTMBoostingClassifier, {**TREES, "transport": "marginal"}, id="ftm-trees"),
    pytest.param(FTMClassifier, NETWORK, id="ftm-network"),
]
PENALIZED = [
    *MATCHED,
    pytest.param(GapRegularizedBoostingClassifier, TREES, id="reg-trees"),
    pytest.param(GapRegularizedClassifier, NETWORK, id="reg-network"),
    pytest.param(ReductionClassifier, NETWORK, id="reduction"),
]
EXPONENTIATED = pytest.param(ExponentiatedGradientClassifier, {"max_iter": 3}, id="exponentiated")
EVERY = [
    *PENALIZED,
    pytest.param(AdversarialClassifier, NETWORK, id="adv"),
    pytest.param(UnconstrainedClassifier, NETWORK, id="plain"),
    EXPONENTIATED,
]
CRITERIA = {
    "demographic_parity": (None,),
    "equal_opportunity": (1,),
    "equalized_odds": (0, 1),
}


def people(n_rows=360, seed=0):
    """Return features, labels and three groups, of which the second is the largest."""
    random = np.random.default_rng(seed)
    group = np.array(["a", "b", "b", "c"])[np.arange(n_rows) % 4]
    X = random.normal(size=(n_rows, 3))
    X[:, 0] += 1.5 * (group == "b") - 1.0 * (group == "c")
    y = (X[:, 0] + X[:, 1] + random.normal(0, 0.7, n_rows) > 0.3).astype(int)
    return X, y, group


X, Y, GROUP = people()


def fitted(family, settings, **more):
    return made(family, **{**settings, **more}).fit(X, Y, sensitive_features=GROUP)


def scores(model, groups=GROUP):
    return model.predict_proba(X, sensitive_features=groups)[:, 1]


def largest_gap(score, labels):
    """Return the largest gap of mean scores over pairs of groups, the mean over classes."""
    found = []
    for label in labels:
        inside = np.ones(len(Y), bool) if label is None else label == Y
        means = [score[inside & (name == GROUP)].mean() for name in "abc"]
        found.append(max(abs(a - b) for a, b in combinations(means, 2)))
    return np.mean(found)


@pytest.mark.parametrize(("family", "settings"), PENALIZED)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_large_weight_closes_the_gap_of_the_criterion(family, settings, criterion):
    path = fairness_path(
        X,
        Y,
        sensitive_features=GROUP,
        estimator=made(family, criterion=criterion, **settings),
        fairness_weights=[0.0, 200.0 if "Reduction" in family.__name__ else 20.0],
    )
    plain, fair = (largest_gap(scores(model), CRITERIA[criterion]) for model in path.models)
    assert fair < 0.4 * plain
    assert path.models[1].groups_ == ("a", "b", "c")


def test_an_adversary_guesses_among_all_groups():
    plain, fair = (
        fitted(AdversarialClassifier, NETWORK, fairness_weight=weight) for weight in (0.0, 3.0)
    )
    assert largest_gap(scores(fair), (None,)) < 0.7 * largest_gap(scores(plain), (None,))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_exponentiated_gradient_bounds_every_group(criterion):
    loose, tight = (
        ExponentiatedGradientClassifier(eps=eps, max_iter=20, criterion=criterion).fit(
            X, Y, sensitive_features=GROUP
        )
        for eps in (1.0, 0.02)
    )
    labels = CRITERIA[criterion]
    assert largest_gap(scores(tight), labels) < 0.5 * largest_gap(scores(loose), labels)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("reference", [None, "c"])
def test_squared_gaps_are_those_of_the_parts_by_hand(criterion, reference):
    weights = np.random.default_rng(0).uniform(0.5, 2, len(Y))
    rows = rows_of(X, Y, GROUP, weights)
    parts = rows.comparisons(read_criterion(criterion), reference)
    score = np.random.default_rng(1).uniform(size=len(Y))
    target, wanted, total = reference or "b", 0.0, 0.0
    for label in CRITERIA[criterion]:
        inside = np.ones(len(Y), bool) if label is None else label == Y
        means = {
            name: np.average(
                score[inside & (name == GROUP)], weights=weights[inside & (name == GROUP)]
            )
            for name in "abc"
        }
        for name in set("abc") - {target}:
            wanted += (means[name] - means[target]) ** 2
            total += 1.0
    assert SquaredMeanGap(parts, rows).value(score) == pytest.approx(wanted / total)


def test_violations_of_three_groups_by_hand():
    rows = rows_of(X, Y, GROUP)
    parts = rows.comparisons(read_criterion("demographic_parity"))
    score = np.random.default_rng(1).uniform(size=len(Y))
    wanted = sum((score[name == GROUP].mean() - score.mean()) ** 2 for name in "abc")
    assert ConstraintViolation(parts, rows).value(score) == pytest.approx(wanted)


@pytest.mark.parametrize(("family", "settings"), MATCHED)
def test_what_is_matched_is_what_the_matcher_gives(family, settings):
    more = {"criterion": "equalized_odds", "reference": "a", "fairness_weight": 2.0}
    matcher = OptimalTransportMatcher(criterion="equalized_odds", reference="a", tolerance=1e-3)
    by_itself = fitted(family, settings, **more)
    given = by_itself.encoder_.transform(X)
    coupling = matcher.match(given, GROUP, Y)
    assert len(coupling.parts) == 4
    assert {part.groups[1] for part in coupling.parts} == {"a"}
    ready = made(family, **{**settings, **more}).fit(
        X, Y, sensitive_features=GROUP, coupling=coupling
    )
    assert_allclose(scores(ready), scores(by_itself), atol=0.02)


@pytest.mark.parametrize(("family", "settings"), MATCHED)
def test_names_and_order_of_groups_make_no_difference(family, settings):
    other = np.array([{"a": "z", "b": "y", "c": "x"}[name] for name in GROUP])
    blind = {"sensitive_at_prediction": False, "fairness_weight": 2.0}
    first = fitted(family, settings, **blind).predict_proba(X)
    second = made(family, **settings, **blind).fit(X, Y, sensitive_features=other).predict_proba(X)
    tolerance = 1e-9 if family is FTMBoostingClassifier else 0.1
    assert_allclose(first, second, atol=tolerance)


def test_a_combination_with_a_missing_attribute_is_called_missing():
    reader = Reader("FTMClassifier")
    reader.groups_, reader.attributes_ = ("f, u", "m, u"), ("sex", "race")
    rows = pd.DataFrame({"sex": ["m", "f"], "race": ["u", None]})
    told = r"no group in 1 row \(the first is row 1, counted from 0\)"
    with pytest.raises(GroupError, match=told):
        reader.codes(reader.labels(rows))


@pytest.mark.parametrize(("family", "settings"), EVERY)
def test_an_unseen_group_and_a_missing_one_are_named(family, settings):
    model = fitted(family, settings)
    with pytest.raises(GroupError, match="'d'"):
        scores(model, np.where(GROUP == "a", "d", GROUP))
    with pytest.raises(GroupError):
        made(family, **settings).fit(X, Y, sensitive_features=np.full(len(Y), "a"))


@pytest.mark.parametrize(("family", "settings"), [*PENALIZED, EXPONENTIATED])
def test_a_group_of_one_class_has_no_equal_opportunity(family, settings):
    y = np.where(GROUP == "c", 0, Y)
    made(family, **settings).fit(X, y, sensitive_features=GROUP)
    for criterion in ("equal_opportunity", "equalized_odds"):
        with pytest.raises(LabelError, match="Group 'c' has no rows with a positive label"):
            made(family, **settings, criterion=criterion).fit(X, y, sensitive_features=GROUP)
    ignoring = {"criterion": "equal_opportunity", "small_groups": ("ignore", 100)}
    with pytest.raises(GroupError, match="Fewer than two groups"):
        made(family, **settings, **ignoring).fit(X, y, sensitive_features=GROUP)


class TestSmallGroups:
    FEW = np.where(np.arange(len(Y)) < 3, "rare", np.where(np.arange(len(Y)) < 5, "odd", GROUP))

    @pytest.mark.parametrize(("family", "settings"), EVERY)
    def test_they_are_listed_with_the_ways_out(self, family, settings):
        with pytest.raises(GroupError, match=r"'odd'.*2.*'rare'.*3.*'pool'.*'ignore'"):
            made(family, **settings, small_groups=("error", 5)).fit(
                X, Y, sensitive_features=self.FEW
            )

    @pytest.mark.parametrize(("family", "settings"), EVERY)
    def test_together_they_are_one_group(self, family, settings, tmp_path):
        pooled = made(family, **settings, small_groups=("pool", 5))
        pooled.fit(X, Y, sensitive_features=self.FEW)
        assert set(pooled.groups_) == {"a", "b", "c", "other"}
        by_hand = np.where(np.isin(self.FEW, ["rare", "odd"]), "other", self.FEW)
        alone = made(family, **settings).fit(X, Y, sensitive_features=by_hand)
        assert_array_equal(scores(pooled, self.FEW), scores(alone, by_hand))
        if family in (FTMBoostingClassifier, FTMClassifier):
            again = load(pooled.save(tmp_path / "model"))
            assert_array_equal(scores(again, self.FEW), scores(pooled, self.FEW))

    @pytest.mark.parametrize(("family", "settings"), MATCHED)
    def test_or_they_are_learned_from_and_not_matched(self, family, settings):
        model = made(family, **settings, small_groups=("ignore", 5), fairness_weight=20.0)
        model.fit(X, Y, sensitive_features=self.FEW)
        assert set(model.groups_) == {"a", "b", "c", "odd", "rare"}
        assert np.isfinite(scores(model, self.FEW)).all()
        rows = rows_of(X, Y, self.FEW, apart=(3, 4))
        matched = model._penalty(rows, None).coupling
        assert {label for part in matched.parts for label in part.groups} == {"a", "b", "c"}

    def test_a_tiny_group_is_told(self):
        with pytest.warns(SmallGroupWarning, match=r"'rare' \(3\)|'rare'.*3"):
            made(FTMBoostingClassifier, **TREES).fit(X, Y, sensitive_features=self.FEW)

    def test_a_tiny_pool_is_told_with_the_number_that_pools_more(self):
        groups = read_groups(np.repeat(["a", "b", "c", "d"], [90, 45, 3, 4]))
        with pytest.warns(SmallGroupWarning, match=r"'other': 7 rows.*\('pool', 46\)"):
            settle_small_groups(groups, "pool")
        more = settle_small_groups(groups, ("pool", 46))
        assert more.labels == ("a", "other")

    def test_a_bound_pools_by_the_whole_table(self):
        model = made(
            FTMBoostingClassifier,
            **TREES,
            max_gap=1.0,
            fairness_weight=(0.0, 2.0),
            small_groups=("pool", 6),
        ).fit(X, Y, sensitive_features=self.FEW)
        assert set(model.groups_) == {"a", "b", "c", "other"}


@pytest.mark.parametrize(("family", "settings"), MATCHED)
@pytest.mark.parametrize(
    ("criterion", "measure"),
    [("equal_opportunity", "true_positive_gap"), ("equalized_odds", "equalized_odds_gap")],
)
@pytest.mark.filterwarnings("ignore::fairmatch.exceptions.FairmatchWarning")
def test_a_bound_is_on_the_gap_of_the_criterion(family, settings, criterion, measure):
    bound = 0.25
    model = fitted(
        family, settings, criterion=criterion, max_gap=bound, fairness_weight=(0.0, 1.0, 20.0)
    )
    curve = model.validation_curve_
    within = curve[(curve[measure] <= bound) & curve.acceptance_rate.between(0.001, 0.999)]
    kept = within if len(within) else curve
    assert model.fairness_weight_ in kept.fairness_weight.to_numpy()


class TestSeveralAttributes:
    TABLE = pd.DataFrame({"sex": np.array(["f", "m"])[np.arange(len(Y)) // 2 % 2], "race": GROUP})

    @pytest.mark.parametrize(("family", "settings"), EVERY)
    def test_combinations_are_the_groups(self, family, settings, tmp_path):
        model = made(family, **settings).fit(X, Y, sensitive_features=self.TABLE)
        assert model.groups_ == ("f, a", "f, b", "m, b", "m, c")
        whole = pd.DataFrame(X, columns=[*"pqr"]).join(self.TABLE)
        inside = made(family, **settings, sensitive_column=["sex", "race"]).fit(whole, Y)
        assert_array_equal(inside.predict_proba(whole)[:, 1], scores(model, self.TABLE))
        with pytest.raises(GroupError, match="'f, c'"):
            scores(model, self.TABLE.assign(sex="f"))
        if family in (FTMBoostingClassifier, FTMClassifier):
            again = load(inside.save(tmp_path / "model"))
            assert_array_equal(again.predict_proba(whole), inside.predict_proba(whole))

    @pytest.mark.parametrize("kind", [pl.from_pandas, pd.DataFrame.to_numpy])
    def test_of_any_library(self, kind):
        model = made(FTMBoostingClassifier, **TREES).fit(X, Y, sensitive_features=self.TABLE)
        other = made(FTMBoostingClassifier, **TREES).fit(X, Y, sensitive_features=kind(self.TABLE))
        assert_array_equal(scores(other, kind(self.TABLE)), scores(model, self.TABLE))

    def test_a_constant_attribute_is_named(self):
        with pytest.raises(GroupError, match=r"'sex' .* constant"):
            made(FTMBoostingClassifier, **TREES).fit(
                X, Y, sensitive_features=self.TABLE.assign(sex="f")
            )

    def test_more_combinations_than_the_rows_allow(self):
        number = self.TABLE.assign(number=np.arange(len(Y)).astype(str))
        with pytest.raises(GroupError, match="fewer than 2 rows"):
            made(FTMBoostingClassifier, **TREES).fit(X, Y, sensitive_features=number)


@pytest.mark.parametrize(("family", "settings"), MATCHED)
def test_a_partial_coupling_leaves_the_loss_alone(family, settings):
    """The penalty sees the pairs, the loss sees everybody."""
    chosen = [np.flatnonzero(name == GROUP)[:5] for name in "ab"]
    coupling = Coupling(*chosen, np.full(5, 0.2), n_rows=len(Y), groups=("a", "b"))
    model = made(family, **{**settings, "fairness_weight": 0.2})
    model.fit(X, Y, sensitive_features=GROUP, coupling=coupling)
    plain = fitted(family, settings, fairness_weight=0.0)
    assert np.mean((scores(model) >= 0.5) == Y) > np.mean((scores(plain) >= 0.5) == Y) - 0.05
    assert coupling.gap(scores(model)) < 0.9 * coupling.gap(scores(plain))


@pytest.mark.parametrize(("family", "settings"), MATCHED)
def test_labels_are_not_matched_within_labels(family, settings):
    with pytest.raises(InputError, match="Use transport='marginal'"):
        fitted(family, settings, transport="joint", criterion="equalized_odds")
    with pytest.raises(GroupError, match="reference='z'"):
        fitted(family, settings, reference="z")


class Everyone:
    """A matcher of one's own: everybody of one group with everybody of the other."""

    def match(self, X, sensitive_features, y=None, *, sample_weight=None):
        groups = read_groups(sensitive_features)
        sizes = groups.sizes().astype(int)
        return Coupling.from_plan(np.full(sizes, 1.0 / sizes.prod()), sensitive_features)


@pytest.mark.parametrize(("family", "settings"), MATCHED)
def test_a_matcher_of_ones_own_is_run_once_per_part_and_saved_as_such(family, settings, tmp_path):
    model = fitted(family, settings, transport=Everyone(), fairness_weight=20.0)
    assert largest_gap(scores(model), (None,)) < 0.2
    again = load(model.save(tmp_path / "model"))
    assert_array_equal(scores(again), scores(model))
    assert again.transport.name == "Everyone"
    with pytest.raises(InputError, match="matcher of your own, Everyone"):
        again.fit(X, Y, sensitive_features=GROUP)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas], ids=["pandas", "polars"])
def test_attributes_are_found_by_name_in_any_order(kind):
    X, y, group = people(200)
    attributes = pd.DataFrame({"sex": group, "old": (X[:, 2] > 0.0).astype(int)})
    model = made(FTMBoostingClassifier, n_estimators=3).fit(X, y, sensitive_features=attributes)
    turned = kind(attributes[["old", "sex"]])  # with equal values, and so with other meanings
    assert_array_equal(
        model.predict_proba(X, sensitive_features=turned),
        model.predict_proba(X, sensitive_features=attributes),
    )
    with pytest.raises(
        GroupError, match=r"the attributes 'sex', 'age'.*those of fit were 'sex', 'old'"
    ):
        model.predict(X, sensitive_features=kind(attributes.rename(columns={"old": "age"})))
    model.predict(X, sensitive_features=attributes.to_numpy())  # without names, the order counts


@pytest.mark.parametrize("wrapper", [False, True])
def test_a_ready_coupling_must_compare_whom_the_criterion_compares(wrapper):
    points = X
    everybody = OptimalTransportMatcher().match(points, GROUP)
    positives = OptimalTransportMatcher(criterion="equal_opportunity").match(points, GROUP, Y)
    within = OptimalTransportMatcher(criterion="equalized_odds").match(points, GROUP, Y)

    def fit(criterion, coupling, **more):
        given = {"criterion": criterion, **more}
        model = (
            MatchSmoothingClassifier(LogisticRegression(), cv=2, score_weight=0.0, **given)
            if wrapper
            else made(FTMBoostingClassifier, **TREES, **given)
        )
        return model.fit(X, Y, sensitive_features=GROUP, coupling=coupling)

    fit("equal_opportunity", positives)
    fit("equalized_odds", within)
    fit("demographic_parity", positives)  # any matching across groups will do
    with pytest.raises(CouplingError, match="compares people with a positive label, and"):
        fit("equal_opportunity", everybody)
    with pytest.raises(CouplingError, match="compares people with a positive label, and"):
        fit("equal_opportunity", within)
    with pytest.raises(CouplingError, match="compares people with the same label, and"):
        fit("equalized_odds", everybody)
    target = everybody.parts[0].groups[1]
    fit("demographic_parity", everybody, reference=target)
    other = next(label for label in "abc" if label != target)
    with pytest.raises(CouplingError, match=f"reference='{other}' was given"):
        fit("demographic_parity", everybody, reference=other)


def test_a_vote_of_learners_takes_weights():
    voters = [("one", LogisticRegression()), ("two", LogisticRegression(C=0.1))]
    model = MatchSmoothingClassifier(VotingClassifier(voters, voting="soft"), cv=2)
    assert np.isfinite(scores(model.fit(X, Y, sensitive_features=GROUP))).all()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda row: row.to_dict(), r"X is a dict.*pandas\.DataFrame\(\[X\]\)"),
        (lambda row: [row.to_dict()], r"X is a list of dicts.*pandas\.DataFrame\(X\)"),
        (lambda row: row, r"X is a Series.*table\.iloc\[\[0\]\]"),
    ],
    ids=["dict", "dicts", "series"],
)
@pytest.mark.parametrize("column", [None, "sex"])
@pytest.mark.parametrize("seen", [True, False])
def test_records_are_no_table(what, words, column, seen):
    table = pd.DataFrame(X, columns=list("abc")).assign(job=np.tile(["cook", None], len(X) // 2))
    sex = np.where(GROUP == "a", "f", "m")
    model = FTMBoostingClassifier(
        LGBMClassifier(n_estimators=2), sensitive_column=column, sensitive_at_prediction=seen
    )
    beside = {"sensitive_features": sex}
    if column is not None:
        table, beside = table.assign(sex=sex), {}
    model.fit(table, Y, **beside)
    alone = {name: own[:1] for name, own in beside.items()} if seen else {}
    with pytest.raises(InputError, match=words):
        model.predict(what(table.iloc[0]), **alone)
    frame = pd.DataFrame([table.iloc[1].to_dict()])  # what the message advises
    alone = {name: own[1:2] for name, own in beside.items()} if seen else {}
    assert model.predict(frame, **alone) == model.predict(table[1:2], **alone)


def test_one_group_alone_is_no_column():
    table = pd.DataFrame(X, columns=list("abc"))
    model = FTMBoostingClassifier(LGBMClassifier(n_estimators=2))
    with pytest.raises(InputError, match=r"got 'sex' alone.*table\['sex'\].*\['sex'\]"):
        model.fit(table, Y, sensitive_features="sex")
