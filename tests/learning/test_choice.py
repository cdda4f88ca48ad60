import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import equalized_odds_difference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, roc_auc_score
from synthetic import QUICK, made, people

from fairmatch import (
    Coupling,
    FTMBoostingClassifier,
    FTMClassifier,
    OptimalTransportMatcher,
    QuantileAlignmentClassifier,
)
from fairmatch.exceptions import (
    ConstantModelWarning,
    CouplingError,
    FairmatchWarning,
    GapNotReachedError,
    GapNotReachedWarning,
    GroupError,
    InputError,
    LabelError,
)
from fairmatch.learning.choice import Bound, jackknife
from fairmatch.learning.learners import add_columns
from fairmatch.learning.networks import train_networks
from fairmatch.learning.reading import encoded, stratified_split
from fairmatch.measures import MEASURES, demographic_parity_gap, matched_parity_gap
from fairmatch.measures.distributions import ScoredPeople, Settings
from fairmatch.measures.registry import BOUNDED, applicable
from fairmatch.people.groups import read_groups
from fairmatch.people.outcome import LOGISTIC, PROBABILITY
from fairmatch.people.people import Labels, People

WEIGHTS = (0.0, 0.5, 2.0)
SETTINGS = {**QUICK, "epochs": 12, "learning_rate": 0.02, "fairness_weight": WEIGHTS}


@pytest.fixture(scope="module")
def rows():
    return people(400)


@pytest.fixture(scope="module")
def fitted(rows):
    X, y, group = rows
    return made(FTMClassifier, max_gap=0.2, **SETTINGS).fit(X, y, sensitive_features=group)


def held_out(y, group):
    return stratified_split(y, read_groups(group), 0.2, SETTINGS["random_state"])[1]


def test_the_curve_is_measured_on_the_rows_held_out(rows, fitted):
    X, y, group = rows
    out = held_out(y, group)
    for position, model in enumerate(fitted.path_.models):
        line = fitted.validation_curve_.iloc[position]
        assert line.fairness_weight == WEIGHTS[position] == model.fairness_weight
        if model.fairness_weight_ == fitted.fairness_weight_:
            continue  # the model that is kept has learned from these rows too
        scores = model.predict_proba(X[out], sensitive_features=group[out])[:, 1]
        assert line.accuracy == line.score == np.mean((scores >= 0.5) == y[out])
        gap = demographic_parity_gap(None, scores, sensitive_features=group[out])
        assert line.demographic_parity_gap == gap


def test_the_model_that_is_kept_continues_a_plain_network_of_all_rows(rows, fitted):
    X, y, group = rows
    alone = made(FTMClassifier, **{**SETTINGS, "fairness_weight": 0.0})
    alone.fit(X, y, sensitive_features=group)
    reader = alone._reader()
    seen = reader.fit(reader.read(X, y, group, None))
    (network,) = train_networks(
        alone._network(),
        seen,
        encoded(seen).inputs,
        [fitted.fairness_weight_],
        loss=LOGISTIC,
        penalty=lambda: alone._penalty(seen, None),
        random_state=0,
        start=alone.scorer_,
    )
    assert fitted.n_epochs_ == network.n_epochs == 12 + 3
    scores = network.scores(encoded(seen).inputs)
    assert_array_equal(fitted.predict_proba(X, sensitive_features=group)[:, 1], scores)


def test_the_most_accurate_model_within_the_gap_is_kept(rows, fitted):
    X, _, group = rows
    curve = fitted.validation_curve_
    within = curve[curve.demographic_parity_gap <= 0.2]
    assert 0 < len(within) < len(WEIGHTS)
    assert fitted.fairness_weight_ == within.fairness_weight[within.accuracy.idxmax()]
    chosen = fitted.path_.models[WEIGHTS.index(fitted.fairness_weight_)]
    assert_array_equal(
        fitted.predict_proba(X, sensitive_features=group),
        chosen.predict_proba(X, sensitive_features=group),
    )


def candidates(gaps, score, rates=0.5, weights=None):
    """Return the measures of candidates, as a choice sees them."""
    weights = np.arange(len(gaps), dtype=float) if weights is None else weights
    return pd.DataFrame(
        {
            "fairness_weight": weights,
            "demographic_parity_gap": gaps,
            "score": score,
            "acceptance_rate": rates,
        }
    )


@pytest.mark.parametrize(
    ("gaps", "score", "error", "chosen"),
    [
        ([0.3, 0.1, 0.05], [0.9, 0.8, 0.7], 0.0, (1, True)),
        ([0.3, 0.2, 0.05], [0.9, 0.7, 0.8], 0.0, (2, True)),
        ([0.3, 0.2, 0.05], [0.9, 0.79, 0.8], 0.02, (1, True)),  # within one standard error
        ([0.1, 0.09, 0.05], [0.8, 0.9, 0.8], 0.0, (1, True)),
        ([0.3, 0.19, 0.22, 0.1], [0.9, 0.8, 0.8, 0.7], 0.0, (3, True)),  # .205 by the trend
        ([0.3, 0.22, 0.17, 0.1], [0.9, 0.8, 0.8, 0.7], 0.0, (2, True)),
        ([0.5, 0.4, 0.3], [0.9, 0.8, 0.7], 0.0, (2, False)),
    ],
)
def test_the_choice(gaps, score, error, chosen):
    assert Bound(0.2, "demographic_parity_gap").best(candidates(gaps, score), error) == chosen


@pytest.mark.parametrize(
    ("error", "chosen"),
    [
        (0.03, 2),  # .14 and its standard error are within the bound
        (0.01, 1),  # that would cost more than one standard error of the score
        (0.02, 2),
        (0.05, 2),  # the nearest to the plain model of those that are
    ],
)
def test_a_gap_and_its_standard_error_are_within_the_bound(error, chosen):
    curve = candidates([0.3, 0.18, 0.14, 0.05], [0.9, 0.82, 0.8, 0.79])
    curve["gap_error"] = 0.05
    assert Bound(0.2, "demographic_parity_gap").best(curve, error) == (chosen, True)


def test_where_no_margin_is_affordable_the_fairest_that_is_affordable_is_kept():
    curve = candidates([0.3, 0.18, 0.16, 0.05], [0.9, 0.82, 0.81, 0.6])
    curve["gap_error"] = 0.1
    assert Bound(0.2, "demographic_parity_gap").best(curve, 0.02) == (2, True)


def test_the_standard_error_of_a_gap_is_that_of_two_rates():
    rng, group = np.random.default_rng(0), np.repeat([0, 1], [300, 150])
    rates, found, errors = np.array([0.3, 0.6]), [], []
    for _ in range(300):
        accepted = rng.random(450) < rates[group]
        rows = People(read_groups(group), labels=Labels(rng.integers(2, size=450) * 1.0, (0, 1)))

        def gap(rows, accepted=accepted):
            return abs(np.diff([accepted[rows][group[rows] == k].mean() for k in (0, 1)])[0])

        found.append(gap(np.arange(450)))
        errors.append(jackknife(gap, rows) ** 2)
    exact = np.sum(rates * (1.0 - rates) / [300, 150])
    assert_allclose(np.mean(errors), exact, rtol=0.1)
    assert_allclose(np.var(found), exact, rtol=0.2)


@pytest.mark.parametrize(
    ("gaps", "noise", "chosen"),
    [
        ([0.21, 0.25, 0.3, 0.26], 0.0, 3),  # the trend is level, so the fairest is kept
        ([0.4, 0.25, 0.1, 0.1], 0.0, 3),
        ([0.4, 0.25, 0.12, 0.1], 0.05, 3),
        ([0.06], 0.0, 0),
    ],
)
def test_the_fallback_is_never_the_plain_model(gaps, noise, chosen):
    curve = candidates(gaps, 0.9)
    assert Bound(0.05, "demographic_parity_gap").best(curve, noise=noise) == (chosen, False)


def test_a_gap_that_is_not_penalised_is_smoothed_by_its_neighbours():
    curve = candidates([0.4, 0.1, 0.4, 0.1], 0.9)
    bound = Bound(0.2, "demographic_parity_gap", falls=False)
    assert bound.expected(curve).tolist() == pytest.approx([0.325, 0.25, 0.25, 0.175])
    falling = Bound(0.2, "demographic_parity_gap").expected(curve)
    assert falling.tolist() == pytest.approx([0.4, 0.25, 0.25, 0.1])


def test_a_fit_without_max_gap_forgets_the_path(rows):
    X, y, group = rows
    model = made(FTMClassifier, max_gap=1.0, **{**SETTINGS, "epochs": 1})
    model.fit(X, y, sensitive_features=group)
    assert hasattr(model, "path_")
    model.set_params(max_gap=None, fairness_weight=1.0).fit(X, y, sensitive_features=group)
    assert not hasattr(model, "path_")


def test_a_gap_out_of_reach_warns_of_the_smallest(rows):
    X, y, group = rows
    settings = {**SETTINGS, "fairness_weight": (*WEIGHTS, 100.0)}
    model = made(FTMClassifier, max_gap=0.0, gap_measure="mean_parity_gap", **settings)
    with pytest.warns(GapNotReachedWarning) as caught:
        model.fit(X, y, sensitive_features=group)
    curve = model.validation_curve_
    deciding = curve[curve.acceptance_rate.between(0.0, 1.0, inclusive="neither")]
    assert 0 < len(deciding) < len(curve)  # the others accept nobody, with a gap near 0
    assert f"{deciding.mean_parity_gap.min():.3g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert model.fairness_weight_ == WEIGHTS[deciding.mean_parity_gap.idxmin()]


@pytest.mark.parametrize(("label", "whom"), [(0, "nobody"), (1, "everybody")])
def test_a_model_that_decides_nothing_is_told(rows, label, whom):
    X, y, group = rows
    y = np.where(np.arange(len(y)) % 5 == 0, y, label)  # most people have the same label
    model = made(FTMClassifier, max_gap=0.05, **{**SETTINGS, "fairness_weight": [1000.0]})
    with pytest.warns(ConstantModelWarning, match=f"accepts {whom} ") as caught:
        model.fit(X, y, sensitive_features=group)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.validation_curve_.acceptance_rate[0] == label


@pytest.mark.parametrize("transport", ["marginal", "joint"])
def test_the_matched_gap_is_measured_on_a_matching_of_the_held_out_rows(rows, transport):
    X, y, group = rows
    model = made(
        FTMClassifier,
        transport,
        max_gap=1.0,
        gap_measure="matched_parity_gap",
        **{**SETTINGS, "epochs": 1},
    ).fit(X, y, sensitive_features=group)
    out = held_out(y, group)
    matcher = OptimalTransportMatcher(100.0 if transport == "joint" else 0.0)
    coupling = matcher.match(model.encoder_.transform(X[out]), group[out], y[out])
    place = 1 + (model.fairness_weight_ == WEIGHTS[1])  # not the one trained on all rows
    scores = model.path_.models[place].predict_proba(X[out], sensitive_features=group[out])[:, 1]
    gap = matched_parity_gap(None, scores, sensitive_features=group[out], coupling=coupling)
    assert model.validation_curve_.matched_parity_gap[place] == pytest.approx(gap, rel=1e-2)


@pytest.mark.parametrize("measure", applicable(PROBABILITY))
def test_any_gap_by_name(rows, measure):
    X, y, group = rows
    settings = {**SETTINGS, "epochs": 1}
    model = made(FTMClassifier, max_gap=1.0, gap_measure=measure, **settings)
    model.fit(X, y, sensitive_features=group)
    assert (model.validation_curve_[measure] <= 1.0).all()


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_the_split_is_stratified(rows, share):
    _, y, group = rows
    train, out = stratified_split(y, read_groups(group), share, 0)
    assert_array_equal(np.sort(np.concatenate([train, out])), np.arange(400))
    for label in (0, 1):
        for code in (0, 1):
            stratum = (y == label) & (group == code)
            assert stratum[out].sum() == round(share * stratum.sum())


def test_one_class_in_a_group_leaves_the_gaps_of_error_rates_open(rows):
    X, y, group = rows
    y = np.where(group == 0, 0, y)
    settings = {**SETTINGS, "epochs": 1}
    model = made(FTMClassifier, max_gap=1.0, **settings).fit(X, y, sensitive_features=group)
    assert model.validation_curve_.true_positive_gap.isna().all()
    assert model.validation_curve_.false_positive_gap.notna().all()
    model.set_params(gap_measure="true_positive_gap")
    with pytest.raises(LabelError, match="has no rows of one class there"):
        model.fit(X, y, sensitive_features=group)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gap_measure": "parity"}, "bounded here; choose one of demographic_parity_gap"),
        ({"max_gap": -0.1}, "max_gap must be a number in"),
        ({"max_gap": float("nan")}, "max_gap must be a number in"),
        ({"validation_size": 1.0}, "validation_size must be a number in"),
        ({"fairness_weight": []}, "list of numbers"),
        ({"fairness_weight": [-1.0]}, "fairness_weight must be a number in"),
        ({"transport": "sideways"}, "'marginal', 'joint' or a matcher"),
        ({"transport": 3}, "an object that has a match method"),
    ],
    ids=str,
)
def test_bad_settings(rows, settings, message):
    X, y, group = rows
    model = made(FTMClassifier, max_gap=0.1, **SETTINGS).set_params(**settings)
    with pytest.raises(InputError, match=message):
        model.fit(X, y, sensitive_features=group)


def test_a_ready_coupling_does_not_fit_the_rows_left():
    X, y, group = people(20)
    pairs = Coupling(np.flatnonzero(group == 0)[:1], np.flatnonzero(group)[:1], [1.0], 20, (0, 1))
    with pytest.raises(CouplingError, match="Leave one of the two out"):
        made(FTMClassifier, max_gap=0.1, **SETTINGS).fit(
            X, y, sensitive_features=group, coupling=pairs
        )


def test_a_group_too_small_to_be_split():
    X, y, group = people(50)
    group = np.arange(50) < 2
    with pytest.raises(GroupError, match="leaves no rows of group True, which has 2"):
        made(FTMClassifier, max_gap=0.1, **SETTINGS).fit(X, y, sensitive_features=group)


def test_lists_are_rows_too(rows):
    X, y, group = (values[:80].tolist() for values in rows)
    model = made(FTMClassifier, max_gap=1.0, **{**SETTINGS, "epochs": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, sensitive_features=group, sample_weight=[1.0] * 80)
    assert len(model.path_) == 3


@pytest.mark.parametrize(
    ("rates", "chosen"),
    [
        ([0.2, 0.06, 0.004, 0.0], 1),  # 0.004 is nearly nobody beside 0.2
        ([0.004, 0.003, 0.002, 0.0], 2),  # where few are accepted by all, few are enough
        ([0.8, 0.9, 0.999, 1.0], 1),
    ],
)
def test_models_that_decide_are_preferred(rates, chosen):
    curve = candidates([0.2, 0.01, 0.01, 0.0], [0.90, 0.80, 0.82, 0.81], rates)
    assert Bound(0.05, "demographic_parity_gap").best(curve) == (chosen, True)


@pytest.mark.parametrize(
    ("criterion", "few"), [("demographic_parity", False), ("equal_opportunity", True)]
)
def test_groups_are_small_where_few_of_their_rows_are_compared(criterion, few):
    generator = np.random.default_rng(0)
    X, group = generator.normal(size=(4000, 2)), np.arange(4000) % 2
    y = generator.permutation(4000) < 160  # 16 positives of each group are held out
    model = made(FTMClassifier, max_gap=0.1, criterion=criterion, **SETTINGS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y.astype(int), sensitive_features=group)
    assert any("The groups are small" in str(w.message) for w in caught) == few


@pytest.mark.parametrize("max_gap", [None, 0.2])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("y", "y has 300 samples, sensitive_features has 400"),
        ("group", "y has 400 samples, sensitive_features has 300"),
        ("weight", "sample_weight has 300 rows where 400 were expected"),
        ("X", "300 rows"),
    ],
)
def test_columns_of_other_lengths_are_told_with_and_without_a_bound(rows, max_gap, column, message):
    X, y, group = rows
    columns = {"X": X, "y": y, "group": group, "weight": np.ones(len(y))}
    columns[column] = columns[column][:300]
    model = made(FTMClassifier, max_gap=max_gap, **{**SETTINGS, "fairness_weight": 1.0})
    with pytest.raises(InputError, match=message):
        model.fit(
            columns["X"],
            columns["y"],
            sensitive_features=columns["group"],
            sample_weight=columns["weight"],
        )


@pytest.mark.parametrize("max_gap", [None, 0.2])
def test_missing_labels_in_words_are_told_with_and_without_a_bound(rows, max_gap):
    X, y, group = rows
    words = np.where(y == 1, "yes", "no").astype(object)
    words[7] = np.nan
    with pytest.raises(LabelError, match=r"contains NaN\. y must hold one of two classes"):
        made(FTMClassifier, max_gap=max_gap, **{**SETTINGS, "fairness_weight": 1.0}).fit(
            X, words, sensitive_features=group
        )


@pytest.fixture(scope="module")
def crossed():
    """Return people of two large groups and of one of 40 people."""
    generator = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [800, 600, 40])
    X = generator.normal(size=(1440, 2)) + (group == "a")[:, None]
    y = (X[:, 0] + generator.normal(size=1440) > 0.5).astype(int)
    return X, y, group


class TestOneWarning:
    """What was asked and reached, which groups limit it, and what to do: in one sentence each."""

    def told(self, model, *given, **more):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(*given, **more)
        assert len(caught) <= 1
        return str(caught[0].message) if caught else ""

    def test_a_bound_that_noise_hides(self, crossed):
        X, y, group = crossed
        model = QuantileAlignmentClassifier(LogisticRegression(), max_gap=0.0)
        told = self.told(model, X, y, sensitive_features=group)
        assert told.startswith("No strength reached demographic_parity_gap <= 0 by cross-fitting.")
        assert "the gap is that between '" in told
        assert "is known only to about ±0.1" in told
        assert told.endswith("or allow a larger max_gap.")
        assert model.fairness_weight_ >= 0.9  # the fairest, and not the plain model
        with pytest.raises(GapNotReachedError, match="No strength reached") as raised:
            model.set_params(strict=True).fit(X, y, sensitive_features=group)
        assert raised.value.parameter == "max_gap"

    @pytest.mark.parametrize("n_groups", [2, 3])
    def test_pooling_is_advised_where_it_leaves_groups_to_compare(self, n_groups):
        generator = np.random.default_rng(0)
        group = np.arange(300) % n_groups
        X, y = generator.normal(size=(300, 2)), np.arange(300) // n_groups % 2
        model = QuantileAlignmentClassifier(LogisticRegression(), max_gap=0.05, small_groups="pool")
        told = self.told(model, X, y, sensitive_features=group)
        times = (1.96 * (0.5 / (300 // n_groups)) ** 0.5 / 0.05) ** 2
        more = f"ake more rows (about {times:.3g} times as many), or allow a larger max_gap."
        assert told.endswith(more)
        assert ("small_groups=('pool', N)" in told) == (n_groups > 2)

    def test_a_bound_that_is_kept_in_peace(self, crossed):
        X, y, group = (values[:1400] for values in crossed)
        model = QuantileAlignmentClassifier(LogisticRegression(), max_gap=0.2, strict=True)
        assert self.told(model, X, y, sensitive_features=group) == ""

    def test_confidence_never_makes_a_model_less_fair(self, crossed):
        X, y, group = crossed
        model = QuantileAlignmentClassifier(LogisticRegression(), max_gap=0.1, random_state=0)
        self.told(model, X, y, sensitive_features=group)
        usual = model.fairness_weight_
        told = self.told(model.set_params(confidence=0.95), X, y, sensitive_features=group)
        assert "could be shown to keep" in told
        # The groups of the rows of the test, and not those of other rows.
        assert "on the 288 rows set aside for it ('a': 160, 'b': 120, 'c': 8) the gap is " in told
        words = r"the gap is ([\d.]+) and its upper limit ([\d.]+)\. .*? about ([\d.]+) times as"
        gap, limit, times = map(float, re.search(words, told).groups())
        assert times == pytest.approx(((limit - gap) / 0.1) ** 2, rel=0.02)
        assert model.fairness_weight_ >= usual

    @pytest.mark.parametrize(("rate", "told"), [(0.75, True), (0.69, False), (0.29, True)])
    def test_a_selection_rate_far_from_that_of_the_plain_model(self, crossed, rate, told):
        _, y, group = crossed
        rows = People(read_groups(group), labels=Labels(y.astype(float), (0, 1)))
        curve = candidates([0.3, 0.02], 0.8, [0.5, rate])
        trials = SimpleNamespace(curve=curve, people=rows, settings=Settings(), crossed=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bound = Bound(0.19, "demographic_parity_gap")
            bound.tell(trials, 1, reached=True)
        assert len(caught) == told
        if told:
            assert caught[0].category is ConstantModelWarning
            assert f"accepts {rate:.1%} of these people, and the plain model 50.0%" in str(
                caught[0].message
            )


class TestCertificates:
    def test_the_model_that_passed_is_kept_and_has_not_seen_the_rows_of_the_test(self):
        X, y, group = people(3000, 3)
        model = QuantileAlignmentClassifier(
            LogisticRegression(), max_gap=0.2, confidence=0.9, random_state=0
        ).fit(X, y, sensitive_features=group)
        rest, out = stratified_split(y, read_groups(group), 0.2, 0)
        alone = QuantileAlignmentClassifier(LogisticRegression(), strength=model.fairness_weight_)
        alone.fit(X[rest], y[rest], sensitive_features=group[rest])
        expected = alone.predict_proba(X, sensitive_features=group)
        assert_array_equal(model.predict_proba(X, sensitive_features=group), expected)
        scored = ScoredPeople(People(read_groups(group[out])), expected[out, 1])
        limit = MEASURES["demographic_parity_gap"].upper_limit(scored, 0.9)
        tested = model.validation_curve_.set_index("fairness_weight").demographic_parity_gap_limit
        assert tested[model.fairness_weight_] == limit <= 0.2
        # From the fairest on, and no further than the first that fails.
        known = tested.dropna()
        assert known.index.max() == 1.0
        assert (known[known.index >= model.fairness_weight_] <= 0.2).all()
        assert (known[known.index < model.fairness_weight_] > 0.2).sum() <= 1

    @pytest.fixture
    def quick(self):
        """Return people of whom plain trees keep the bound on held-out rows, and fail the test."""
        rng = np.random.default_rng(4)
        group = rng.integers(0, 2, 1500)
        X = np.column_stack([rng.normal(size=1500) + 0.3 * group, rng.normal(size=1500)])
        y = (X[:, 0] + 0.7 * rng.normal(size=1500) > 0.2).astype(int)
        return X, y, group

    def test_the_search_finds_models_that_can_pass(self, quick):
        X, y, group = quick
        model = made(
            FTMBoostingClassifier, n_estimators=30, max_gap=0.17, confidence=0.95, random_state=4
        ).fit(X, y, sensitive_features=group)
        curve = model.validation_curve_
        assert curve.demographic_parity_gap[0] <= 0.17  # and plain trees were not the end of it
        passed = curve[curve.demographic_parity_gap_limit <= 0.17]
        assert model.fairness_weight_ == passed.fairness_weight.min() > 0.0

    @pytest.mark.parametrize("max_gap", [0.12, 0.17, 0.25])
    @pytest.mark.parametrize("seed", range(3))
    def test_confidence_never_lowers_the_weight(self, quick, max_gap, seed):
        X, y, group = quick
        model = made(FTMBoostingClassifier, n_estimators=6, max_gap=max_gap, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairmatchWarning)
            usual = model.fit(X, y, sensitive_features=group).fairness_weight_
            model.set_params(confidence=0.95).fit(X, y, sensitive_features=group)
        assert model.fairness_weight_ >= usual
        curve = model.validation_curve_
        assert usual <= curve.fairness_weight[curve.demographic_parity_gap_limit.notna()].min()


@pytest.fixture(scope="module")
def rare():
    """Return people of whom few are refused."""
    X, _, group = people(1500, 5)
    y = (X[:, 0] + np.random.default_rng(1).normal(size=1500) > -0.9).astype(int)
    return X, y, group


class TestWorstCaseOdds:
    """The larger one of the two gaps of error rates, as fairlearn has it."""

    def test_it_is_that_of_fairlearn_and_is_bounded(self):
        X, y, group = people(1500, 9)
        model = QuantileAlignmentClassifier(
            LogisticRegression(), criterion="equalized_odds", decisions="threshold",
            gap_measure="worst_case_odds_gap", max_gap=0.1,
        ).fit(X, y, sensitive_features=group)  # fmt: skip
        curve = model.validation_curve_
        assert curve.worst_case_odds_gap[0] > 0.1
        kept = curve[curve.fairness_weight == model.fairness_weight_].iloc[0]
        assert kept.worst_case_odds_gap == max(kept.true_positive_gap, kept.false_positive_gap)
        assert kept.expected_gap <= 0.1
        scores = model.predict_proba(X, sensitive_features=group)[:, 1]
        people_ = People(read_groups(group), labels=Labels(y.astype(float), (0, 1)))
        found = BOUNDED["worst_case_odds_gap"].value(ScoredPeople(people_, scores))
        expected = equalized_odds_difference(y, scores >= 0.5, sensitive_features=group)
        assert found == pytest.approx(expected)

    def test_its_limit_is_the_larger_one(self):
        generator = np.random.default_rng(0)
        group, y = generator.integers(0, 2, 400), generator.integers(0, 2, 400)
        people_ = People(read_groups(group), labels=Labels(y.astype(float), (0, 1)))
        scored = ScoredPeople(people_, generator.random(400) * (0.7 + 0.3 * group))
        limits = [
            BOUNDED[name].upper_limit(scored, 0.975)
            for name in ("true_positive_gap", "false_positive_gap")
        ]
        found = BOUNDED["worst_case_odds_gap"].upper_limit(scored, 0.95)
        assert found == pytest.approx(max(limits), abs=1e-6)


class TestScoring:
    @pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "balanced_accuracy", "f1"])
    def test_scores_are_those_of_scikit_learn(self, rare, scoring):
        X, y, group = rare
        model = made(
            FTMBoostingClassifier, n_estimators=20, fairness_weight=[0.0, 1.0, 5.0], max_gap=0.5,
            scoring=scoring, random_state=0,
        ).fit(X, y, sensitive_features=group)  # fmt: skip
        out = held_out(y, group)
        for line, one in zip(model.validation_curve_.itertuples(), model.path_.models, strict=True):
            if line.fairness_weight != model.fairness_weight_:
                one.set_params(sensitive_column=None)
                chances = one.predict_proba(X[out], sensitive_features=group[out])
                expected = {
                    "roc_auc": lambda p: roc_auc_score(y[out], p),
                    "neg_log_loss": lambda p: -log_loss(y[out], p),
                    "balanced_accuracy": lambda p: balanced_accuracy_score(y[out], p >= 0.5),
                    "f1": lambda p: f1_score(y[out], p >= 0.5),
                }[scoring](chances[:, 1])
                assert line.score == pytest.approx(expected)

    def test_a_callable_sees_the_rows(self, rare):
        X, y, group = rare

        def right_of_the_first(estimator, X, y):
            return float(np.mean((estimator.predict(X) == y)[X[:, 0] > 0.0]))

        model = QuantileAlignmentClassifier(
            LogisticRegression(), max_gap=0.3, scoring=right_of_the_first
        ).fit(X, y, sensitive_features=group)
        assert model.validation_curve_.score.between(0.5, 1.0).all()

    @pytest.mark.parametrize("weighs", [False, True])
    def test_a_callable_gets_weights_if_it_takes_them(self, rare, weighs):
        X, y, group = rare
        weight = np.random.default_rng(2).random(len(y)) + 0.5

        def plain(estimator, X, y):
            return float(np.mean(estimator.predict(X) == y))

        def weighted(estimator, X, y, sample_weight):
            return float(np.average(estimator.predict(X) == y, weights=sample_weight))

        model = QuantileAlignmentClassifier(
            LogisticRegression(), max_gap=0.3, scoring=weighted if weighs else plain
        ).fit(X, y, sensitive_features=group, sample_weight=weight)
        curve = model.validation_curve_
        assert (curve.score == curve.accuracy).all() == weighs

    @pytest.mark.parametrize(
        "given", [{"scoring": "roc_auc"}, {"strict": True}, {"confidence": 0.9}], ids=str
    )
    def test_what_is_about_a_bound_needs_one(self, rare, given):
        X, y, group = rare
        (name,) = given
        model = QuantileAlignmentClassifier(LogisticRegression(), **given)
        with pytest.raises(InputError, match=f"{name}=.* needs max_gap") as raised:
            model.fit(X, y, sensitive_features=group)
        assert raised.value.parameter == name

    @pytest.mark.parametrize("scoring", ["accurate", 3, ["accuracy"]])
    def test_what_is_none(self, rare, scoring):
        X, y, group = rare
        with pytest.raises(InputError, match="scoring"):
            QuantileAlignmentClassifier(LogisticRegression(), max_gap=0.1, scoring=scoring).fit(
                X, y, sensitive_features=group
            )


class TestSearch:
    """Trees try few weights, and grow again in folds where a group is small."""

    def test_few_weights_find_the_bound(self):
        X, y, group = people(1500, 6)
        model = made(FTMBoostingClassifier, n_estimators=20, max_gap=0.15, random_state=0)
        model.fit(X, y, sensitive_features=group)
        curve = model.validation_curve_
        assert len(curve) <= 7 < len(model._candidates)
        assert list(curve.fairness_weight) == sorted(curve.fairness_weight)
        kept = curve[curve.fairness_weight == model.fairness_weight_].iloc[0]
        assert kept.demographic_parity_gap <= 0.15
        below = curve[curve.fairness_weight < model.fairness_weight_]
        assert (below.expected_gap + below.gap_error > 0.15).all()

    def test_pairs_of_the_search_are_those_of_the_model_that_is_kept(self):
        X, y, group = people(1500, 6)
        model = made(
            FTMBoostingClassifier, "marginal", n_estimators=6, max_gap=0.3,
            fairness_weight=[1.0], random_state=0,
        ).fit(X, y, sensitive_features=group)  # fmt: skip
        rest, _ = stratified_split(y, read_groups(group), 0.2, 0)
        points = model.encoder_.transform(X)[rest]
        pairs = OptimalTransportMatcher(tolerance=1e-3).match(points, group[rest])
        sides = {"source_index": rest[pairs.source_index], "target_index": rest[pairs.target_index]}
        coupling = replace(pairs, n_rows=1500, **sides)
        alone = made(FTMBoostingClassifier, "marginal", n_estimators=6, random_state=0)
        alone.fit(X, y, sensitive_features=group, coupling=coupling)
        assert_allclose(
            model.predict_proba(X, sensitive_features=group),
            alone.predict_proba(X, sensitive_features=group),
            atol=1e-9,
        )

    def test_small_groups_are_measured_on_all_rows(self):
        X, y, group = people(600, 7)
        model = made(FTMBoostingClassifier, n_estimators=6, max_gap=0.1, random_state=0)
        model.fit(X, y, sensitive_features=group)
        # 120 held-out people cannot show a gap of .1; the curve has a rate of all 600.
        assert model.validation_curve_.acceptance_rate.mul(600).round(6).mod(1).eq(0).all()

    @pytest.mark.parametrize("way", ["ignore", "pool"])
    @pytest.mark.parametrize("max_gap", [0.3, 0.05])  # a split, and folds
    @pytest.mark.parametrize("family", ["predicted", "marginal", "network", "alignment"])
    def test_a_group_of_one_person(self, way, max_gap, family):
        X, y, group = people(600, 8)
        names = np.where(group == 1, "a", "b").astype(object)
        names[17] = "alone"
        given = {"max_gap": max_gap, "small_groups": way, "random_state": 0}
        model = {
            "network": lambda: made(
                FTMClassifier, **{**SETTINGS, "epochs": 1}, validation_size=0.8
            ),
            "alignment": lambda: QuantileAlignmentClassifier(LogisticRegression()),
        }.get(family, lambda: made(FTMBoostingClassifier, family, n_estimators=6))()
        model.set_params(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairmatchWarning)
            model.fit(X, y, sensitive_features=names)
        assert np.isfinite(model.predict_proba(X, sensitive_features=names)).all()


def test_a_number_is_for_a_regressor(rows):
    X, y, group = rows
    target, model = np.arange(len(y)) % 120, made(FTMClassifier, max_gap=0.1, **SETTINGS)
    with pytest.raises(LabelError, match=r"120 classes.*use a regressor for numbers"):
        model.fit(X, target, sensitive_features=group)


@pytest.mark.parametrize("column", ["y", "sensitive_features", "sample_weight"])
def test_rows_in_another_order_are_told(rows, column):
    X, y, group = (values[:80] for values in rows)
    table = pd.DataFrame(X, columns=list("abcd")[: X.shape[1]])
    weight = pd.Series(1.0, range(80))
    columns = {
        "y": pd.Series(y), "sensitive_features": pd.Series(group), "sample_weight": weight
    }  # fmt: skip
    model = QuantileAlignmentClassifier(LogisticRegression())
    model.fit(table, **columns)
    with pytest.raises(InputError, match=f"{column} and X have the same index in different orders"):
        model.fit(table, **{**columns, column: columns[column][::-1]})
    # Another index is none that says which row is meant.
    model.fit(table, **{**columns, column: columns[column].set_axis(range(100, 180))})
    if column == "sensitive_features":
        with pytest.raises(InputError, match="in different orders"):
            model.predict(table, sensitive_features=columns[column][::-1])


def test_margins_of_any_size_have_gradients_in_peace():
    labels, margins = np.array([0.0, 1.0, 0.0, 1.0]), np.array([-1e4, 1e4, 1e4, -1e4])
    first, second = LOGISTIC.derivatives(labels, margins)
    assert first.tolist() == [0.0, 0.0, 1.0, -1.0]
    assert second.tolist() == [0.0] * 4


def test_many_groups_give_columns_in_peace():
    wider = add_columns(pd.DataFrame({"age": np.zeros(5)}), np.zeros((5, 150)))
    assert wider.shape == (5, 151)
