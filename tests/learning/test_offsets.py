"""Offsets and alignment of several classes, against brute force and programs of another form."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from fairmatch import (
    GroupBlindClassifier,
    QuantileAlignmentClassifier,
    ScoreAdjustment,
    align_scores,
    fit_adjustment,
)
from fairmatch.exceptions import GapNotReachedWarning, InputError
from fairmatch.learning import offsets as module
from fairmatch.learning.offsets import _Problem, _solve, fit_offsets
from fairmatch.measures import (
    demographic_parity_gap,
    equalized_odds_gap,
    wasserstein_parity_gap,
)
from fairmatch.people.groups import read_criterion
from fairmatch.people.outcome import largest_class

PARITY, ODDS = read_criterion("demographic_parity"), read_criterion("equalized_odds")
RECALL = read_criterion("equal_opportunity")


def draw(seed, n_rows, n_classes=3, n_groups=2):
    generator = np.random.default_rng(seed)
    groups = np.resize(np.arange(n_groups), n_rows)
    margins = 1.5 * generator.normal(size=(n_rows, n_classes))
    margins[:, 0] += 0.8 * groups
    margins[:, 1] -= 0.3 * groups
    chances = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    return chances, groups, generator.uniform(0.5, 2.0, n_rows)


def plain_program(chances, groups, mass, bound):
    """Return the accuracy of the best randomised rule with parity, pair by pair and dense."""
    n_rows, n_classes = chances.shape
    rows = []
    for c in range(n_classes):
        shares = np.zeros((groups.max() + 1, n_rows, n_classes))
        for g in range(groups.max() + 1):
            shares[g, groups == g, c] = mass[groups == g] / mass[groups == g].sum()
        rows += [
            (shares[a] - shares[b]).ravel()
            for a, b in product(range(len(shares)), repeat=2)
            if a != b
        ]
    found = linprog(
        -(chances * mass[:, None]).ravel() / mass.sum(),
        A_ub=np.array(rows),
        b_ub=np.full(len(rows), bound),
        A_eq=np.kron(np.eye(n_rows), np.ones(n_classes)),
        b_eq=np.ones(n_rows),
    )
    return -found.fun


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bound", [0.0, 0.2])
def test_no_deterministic_rule_beats_the_program(seed, bound):
    chances, groups, _ = draw(seed, 8)
    problem = _Problem.of(chances, np.eye(2)[groups], np.ones(8), PARITY)
    rules = [np.array(rule) for rule in product(range(3), repeat=8)]
    best = max(
        problem.accuracy(rule) for rule in rules if problem.gap(problem.rates(rule)) <= bound + 1e-9
    )
    found = _solve(problem, bound)
    assert found.accuracy >= best - 1e-9
    assert found.accuracy == pytest.approx(plain_program(chances, groups, np.ones(8), bound))
    # A person whose decision is not randomised gets the class with the largest value.
    values = problem.values(found.offsets)
    certain = found.shares.max(axis=1) > 1.0 - 1e-9
    chosen = np.take_along_axis(values, found.shares.argmax(axis=1)[:, None], 1)[:, 0]
    assert (chosen[certain] >= values[certain].max(axis=1) - 1e-9).all()
    assert (~certain).sum() <= 2 * 3


@pytest.mark.parametrize("criterion", [PARITY, ODDS, RECALL])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_offsets_reach_what_the_program_promises(criterion, n_groups):
    chances, groups, mass = draw(1, 600, 3, n_groups)
    members, labels = np.eye(n_groups)[groups], tuple(range(n_groups))
    (found,) = fit_offsets(chances, members, mass, criterion, labels, max_gap=0.03)
    tied = 2 * n_groups * 9 * (mass.max() / mass.sum()) * n_groups
    assert found.gap <= 0.03 + tied
    assert found.accuracy == pytest.approx(found.promised[0], abs=tied)
    # The rule of the class docstring, by hand.
    values = chances + found.ties * chances**2
    for row, group in enumerate(groups):
        own = found.offsets[group]
        conditions = list(found.conditions)
        values[row] += chances[row, conditions] @ own if conditions else own[0]
    decided = largest_class(found.move(chances, groups))
    assert (decided == largest_class(values)).all()
    assert (found.move(chances, np.full(600, -1)) == chances).all()


def test_a_large_table_has_the_optimum_of_the_whole_program(monkeypatch):
    chances, groups, mass = draw(2, 900, 4, 2)
    problem = _Problem.of(chances, np.eye(2)[groups], mass, PARITY)
    whole = _solve(problem, 0.02)
    monkeypatch.setattr(module, "_MOST_PEOPLE", 200)
    part = _solve(problem, 0.02)
    assert len(part.people) < 900
    assert part.accuracy == pytest.approx(whole.accuracy, abs=1e-9)


@pytest.mark.parametrize("criterion", [PARITY, ODDS, RECALL])
@pytest.mark.parametrize("soft", [False, True])
def test_offsets_do_not_depend_on_the_order_of_rows(criterion, soft):
    chances, groups, mass = draw(3, 300)
    members = np.eye(2)[groups]
    if soft:
        share = np.random.default_rng(1).uniform(size=300)
        members = np.column_stack([share, 1.0 - share])
    turned = np.random.default_rng(0).permutation(300)
    given = {"criterion": criterion, "labels": (0, 1), "max_gap": 0.02}
    (one,) = fit_offsets(chances, members, mass, **given)
    (other,) = fit_offsets(chances[turned], members[turned], mass[turned], **given)
    assert one.offsets.any()
    assert one.offsets == pytest.approx(other.offsets, abs=1e-9)
    # One offset of every group is fixed, where a constant for all classes decides nothing.
    assert criterion is RECALL or (one.offsets[:, :, 0] == 0.0).all()


def test_a_simulated_optimum_with_known_offsets():
    """Two groups whose probabilities differ by a known shift have it as their offset."""
    generator = np.random.default_rng(4)
    base = generator.uniform(0.2, 0.5, size=(6000, 2))
    chances = np.column_stack([base, 1.0 - base.sum(axis=1)])
    shifted = chances + np.array([0.1, -0.1, 0.0])
    both, groups = np.vstack([chances, shifted]), np.repeat([0, 1], 6000)
    (found,) = fit_offsets(both, np.eye(2)[groups], np.ones(12000), PARITY, (0, 1), max_gap=0.0)
    first, second = (own[0] - own[0].mean() for own in found.offsets)
    assert first - second == pytest.approx([0.1, -0.1, 0.0], abs=2e-3)
    assert found.gap < 2e-3


def test_groups_may_be_known_by_probability_only():
    chances, groups, mass = draw(5, 800)
    soft = np.column_stack([1.0 - chances[:, 0], chances[:, 0]])
    soft = 0.3 * soft + 0.7 * np.eye(2)[groups]
    (found,) = fit_offsets(chances, soft, mass, PARITY, (0, 1), max_gap=0.02)
    decided = largest_class(found.move_members(chances, soft))
    rates = [np.bincount(decided, mass * own, minlength=3) / (mass * own).sum() for own in soft.T]
    assert np.ptp(rates, axis=0).max() == pytest.approx(found.gap, abs=1e-9)
    assert found.gap <= 0.03


@pytest.mark.parametrize("decisions", ["align", "threshold"])
def test_adjustments_of_classes_through_the_public_names(decisions, tmp_path):
    chances, codes, mass = draw(6, 600, 4, 3)
    groups = np.array(["a", "b", "c"])[codes]
    before = demographic_parity_gap(None, chances, sensitive_features=groups, sample_weight=mass)
    found = fit_adjustment(chances, groups, max_gap=0.05, decisions=decisions, sample_weight=mass)
    moved = found.apply(chances, groups)
    after = demographic_parity_gap(None, moved, sensitive_features=groups, sample_weight=mass)
    assert before > 0.15
    assert after <= (0.05 if decisions == "align" else 0.07)
    assert moved.sum(axis=1) == pytest.approx(1.0)
    assert moved.min() >= 0.0
    again = ScoreAdjustment.load(found.save(tmp_path / "adjustment.json"))
    assert (again.apply(chances, groups) == moved).all()
    assert (again.decisions, again.n_classes) == (decisions, 4)
    with pytest.raises(InputError, match="4 classes"):
        found.apply(chances[:, 0], groups)
    # No strength, no change.
    same = fit_adjustment(chances, groups, strength=0.0, decisions=decisions)
    assert same.apply(chances, groups) == pytest.approx(chances)


def test_aligned_vectors_have_nearly_the_same_distribution():
    chances, groups, _ = draw(7, 600, 3, 2)
    before = wasserstein_parity_gap(None, chances, sensitive_features=groups)
    aligned = align_scores(chances, groups)
    half = align_scores(chances, groups, strength=0.5)
    after = [
        wasserstein_parity_gap(None, own, sensitive_features=groups) for own in (half, aligned)
    ]
    assert after[1] < 0.25 * before
    assert after[0] == pytest.approx(before / 2.0, rel=0.15)


def test_two_columns_are_the_code_of_two_classes():
    generator = np.random.default_rng(8)
    scores, groups = generator.uniform(size=200), np.repeat(["a", "b"], 100)
    both = np.column_stack([1.0 - scores, scores])
    assert (align_scores(both, groups) == align_scores(scores, groups)).all()
    # Vectors that lie on a line move as numbers do, up to the number of points.
    line = np.column_stack([(1.0 - scores) / 2.0, (1.0 - scores) / 2.0, scores])
    line /= line.sum(axis=1, keepdims=True)
    assert align_scores(line, groups)[:, 2] == pytest.approx(align_scores(scores, groups), abs=0.03)


def test_what_does_not_combine_is_named():
    chances, groups, _ = draw(9, 100)
    with pytest.raises(InputError, match="alignment of several classes"):
        fit_adjustment(chances, groups, criterion="equal_opportunity")
    with pytest.raises(InputError, match="scale='real'"):
        fit_adjustment(chances, groups, scale="real")
    with pytest.raises(InputError, match="favourable"):
        fit_adjustment(chances[:, 0], groups, favourable=[0])
    tied = np.tile(np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]), (50, 1))
    with pytest.warns(GapNotReachedWarning, match="Offsets reach"):
        fit_adjustment(tied, groups, max_gap=0.0, decisions="threshold")


@pytest.mark.parametrize(
    ("criterion", "max_gap"), [("demographic_parity", 0.15), ("equalized_odds", 0.08)]
)
def test_any_classifier_of_several_classes_gets_offsets(criterion, max_gap):
    generator = np.random.default_rng(10)
    groups = np.resize(["f", "m"], 900)
    X = generator.normal(size=(900, 3)) + 0.7 * (groups == "m")[:, None] * [1.0, 0.0, 0.5]
    margins = X @ generator.normal(size=(3, 3)) * 1.5 + generator.gumbel(size=(900, 3))
    y = np.array(["low", "middle", "top"])[margins.argmax(axis=1)]
    given = {"sensitive_features": groups}
    model = QuantileAlignmentClassifier(
        LogisticRegression(),
        decisions="threshold",
        strength=[0.0, 0.5, 0.9],
        max_gap=max_gap,
        criterion=criterion,
        random_state=0,
    ).fit(X, y, **given)
    measure = read_criterion(criterion).gap_measure
    curve = model.validation_curve_
    kept = curve[curve["fairness_weight"] == model.fairness_weight_].iloc[0]
    assert kept[measure] <= max_gap < curve[measure].max()
    chances = model.predict_proba(X, **given)
    assert chances.shape == (900, 3)
    assert (model.predict(X, **given) == model.classes_[largest_class(chances)]).all()


def test_what_wrappers_do_not_do_with_several_classes_is_named():
    generator = np.random.default_rng(11)
    X, groups = generator.normal(size=(120, 2)), np.resize(["f", "m"], 120)
    y = generator.integers(3, size=120)
    with pytest.raises(InputError, match="alignment of several classes"):
        QuantileAlignmentClassifier(LogisticRegression(), criterion="equal_opportunity").fit(
            X, y, sensitive_features=groups
        )


# Of 40 people each is a fortieth of a rate.
@pytest.mark.filterwarnings("ignore::fairmatch.exceptions.GapNotReachedWarning")
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("criterion", [PARITY, RECALL, ODDS])
def test_probable_groups_reach_the_optimum_of_a_dense_program(criterion, joint):
    """Nobody's group is known: every rate is that of P(group), or of P(group, class)."""
    chances, _, _ = draw(5, 40)
    generator = np.random.default_rng(6)
    both = generator.dirichlet(np.ones(2), size=(40, 3)).transpose(0, 2, 1) * chances[:, None]
    members = both if joint and criterion is not PARITY else both.sum(axis=2)
    labelled = members if members.ndim == 3 else members[:, :, None] * chances[:, None]
    if criterion is PARITY:
        labelled = members[:, :, None]
    bound, rows, gap_of = 0.02, [], []
    n_labels = labelled.shape[2]
    for label in range(n_labels):
        share = labelled[:, :, label] / labelled[:, :, label].sum(axis=0)
        for own in [label] if criterion is RECALL else range(3):
            row = np.zeros((40, 3))
            row[:, own] = share[:, 0] - share[:, 1]
            rows += [row.ravel(), -row.ravel()]
            gap_of += [label, label]
    # The last columns are the gaps of the labels, and equalised odds bounds their mean.
    gaps = np.eye(n_labels)[gap_of]
    mean = np.full((1, n_labels), 1.0 / n_labels) if criterion is ODDS else np.eye(n_labels)
    found = linprog(
        np.concatenate([-chances.ravel() / 40, np.zeros(n_labels)]),
        A_ub=np.block([[np.array(rows), -gaps], [np.zeros((len(mean), 120)), mean]]),
        b_ub=np.concatenate([np.zeros(len(rows)), np.full(len(mean), bound)]),
        A_eq=np.hstack([np.kron(np.eye(40), np.ones(3)), np.zeros((40, n_labels))]),
        b_eq=np.ones(40),
    )
    (own,) = fit_offsets(chances, members, np.ones(40), criterion, ("f", "m"), max_gap=bound)
    assert own.promised[0] == pytest.approx(-found.fun, abs=2e-4 if own.ties else 1e-9)
    decided = largest_class(own.move_members(chances, members))
    assert chances[np.arange(40), decided].mean() == pytest.approx(own.accuracy)


@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_a_blind_wrapper_needs_no_group_at_prediction(criterion):
    generator = np.random.default_rng(3)
    groups = generator.integers(0, 2, 900)
    X = generator.normal(size=(900, 3))
    X[:, 0] += groups
    X[:, 2] += 2.0 * groups  # tells the group, and nothing of the label
    noisy = X[:, 0] + 0.5 * X[:, 1] + generator.normal(size=900)
    y = np.array(["a", "b", "c"])[np.digitize(noisy, [0.0, 1.0])]
    model = GroupBlindClassifier(LogisticRegression(), criterion=criterion, strength=0.0)
    plain = model.fit(X, y, sensitive_features=groups).predict_proba(X)
    assert plain == pytest.approx(LogisticRegression().fit(X, y).predict_proba(X))
    fair = model.set_params(strength=0.9).fit(X, y, sensitive_features=groups).predict_proba(X)
    measure = equalized_odds_gap if criterion == "equalized_odds" else demographic_parity_gap
    gaps = [measure(y, own, sensitive_features=groups) for own in (plain, fair)]
    assert gaps[1] < 0.6 * gaps[0]
    assert (model.predict(X) == model.classes_[largest_class(fair)]).all()
