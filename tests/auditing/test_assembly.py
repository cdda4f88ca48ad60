"""Every fact of an audit against another way to find it."""

import subprocess
import sys
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from audited import appendix_b, labelled_model, planted_model
from fairlearn import metrics as fl
from scipy import stats
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

import fairmatch
from fairmatch import audit, compare_models, measures
from fairmatch.exceptions import (
    ColumnError,
    FairmatchError,
    GroupError,
    InputError,
    LabelError,
)

QUICK = {"n_resamples": 100, "n_subsets": 50, "n_sample": 200}


@pytest.fixture(scope="module")
def labelled():
    return labelled_model()


@pytest.fixture(scope="module")
def found(labelled):
    scores, y, group, X = labelled
    return audit(scores, sensitive_features=group, X=X, y_true=y, **QUICK)


def test_group_facts_are_those_of_scikit_learn(labelled, found):
    scores, y, group, _ = labelled
    for code, facts in enumerate(found.groups):
        own = group == code
        decided = scores[own] >= 0.5
        assert facts.label == str(code)
        assert facts.n_rows == own.sum()
        assert facts.selection_rate.value == pytest.approx(decided.mean())
        assert facts.mean_score.value == pytest.approx(scores[own].mean())
        assert facts.base_rate.value == pytest.approx(y[own].mean())
        assert facts.accuracy.value == pytest.approx(sk.accuracy_score(y[own], decided))
        assert facts.true_positive_rate.value == pytest.approx(sk.recall_score(y[own], decided))
        assert facts.auc.value == pytest.approx(sk.roc_auc_score(y[own], scores[own]))
        counts = np.histogram(scores[own] + 1e-9, bins=20, range=(0, 1))[0]
        assert facts.score_counts == tuple(counts)


def test_calibration_is_that_of_scikit_learn(labelled, found):
    scores, y, group, _ = labelled
    nudged = scores + 1e-9  # scikit-learn closes its bins on the right, fairmatch on the left
    for code, facts in enumerate(found.groups):
        own = group == code
        rate, mean = calibration_curve(y[own], nudged[own].clip(0, 1), n_bins=10)
        bins = [part for part in facts.calibration if part.n_rows]
        assert [part.positive_rate.value for part in bins] == pytest.approx(rate)
        assert [part.mean_score for part in bins] == pytest.approx(mean)
        weights = [part.n_rows for part in bins]
        error = np.average(np.abs(rate - mean), weights=weights)
        assert facts.calibration_error == pytest.approx(error, abs=1e-8)


def test_auc_interval_covers_as_a_bootstrap_does(labelled, found):
    scores, y, group, _ = labelled
    own = group == 0
    known = stats.bootstrap(
        (scores[own], y[own]),
        lambda s, t: sk.roc_auc_score(t, s),
        paired=True,
        vectorized=False,
        n_resamples=400,
        method="percentile",
        **{"rng" if "rng" in signature(stats.bootstrap).parameters else "random_state": 0},
    ).confidence_interval
    auc = found.groups[0].auc
    assert (auc.low, auc.high) == pytest.approx((known.low, known.high), abs=0.015)


def test_gaps_are_those_of_the_measures_of_fairlearn_and_of_scipy(labelled, found):
    scores, y, group, _ = labelled
    decided = scores >= 0.5
    split = {"sensitive_features": group}
    known = measures.gap_table(y, scores, sensitive_features=group)
    known |= {
        "demographic_parity_gap": fl.demographic_parity_difference(y, decided, **split),
        "true_positive_gap": fl.equal_opportunity_difference(y, decided, **split),
        "equalized_odds_gap": fl.equalized_odds_difference(y, decided, agg="mean", **split),
        "wasserstein_parity_gap": stats.wasserstein_distance(
            scores[group == 0], scores[group == 1]
        ),
        "ks_parity_gap": stats.ks_2samp(scores[group == 0], scores[group == 1]).statistic,
    }
    # A measure that an audit does not state of itself.
    worst = known.pop("worst_case_odds_gap")
    assert worst == pytest.approx(fl.equalized_odds_difference(y, decided, **split))
    values = {gap.name: gap.value for gap in found.gaps if gap.name != "matched_parity_gap"}
    assert values == pytest.approx(known)
    assert set(values) == set(known)
    for gap in found.gaps:
        assert 0.0 <= gap.low <= gap.value <= gap.high <= 1.0
        assert gap.symbol == measures.MEASURES[gap.name].symbol
    signed = found.gap("mean_parity_gap").signed
    assert signed == pytest.approx(scores[group == 1].mean() - scores[group == 0].mean())


def test_the_selection_ratio_is_that_of_fairlearn(labelled, found):
    scores, y, group, _ = labelled
    known = fl.demographic_parity_ratio(y, scores >= 0.5, sensitive_features=group)
    ratio = found.selection_ratio
    assert ratio.value == pytest.approx(known)
    assert ratio.low <= ratio.value <= ratio.high <= 1.0


def test_decisions_have_one_gap_under_many_names(labelled):
    scores, _, group, _ = labelled
    decisions = (scores >= 0.5).astype(int)
    found = audit(decisions, sensitive_features=group, **QUICK)
    gaps = [(gap.value, gap.low, gap.high) for gap in found.gaps]
    assert len(gaps) == 5
    assert all(gap == pytest.approx(gaps[0]) for gap in gaps)
    assert found.matching.transport is None
    assert found.subsets is None
    assert [m.matching for m in found.matching.matched_gaps] == ["fair"]


def test_everybody_accepted_is_not_certain():
    found = audit(np.ones(200), sensitive_features=np.tile([0, 1], 100), **QUICK)
    gap = found.gap("demographic_parity_gap")
    assert gap.value == 0.0
    assert gap.low == 0.0
    assert gap.high > 0.01


def test_nobody_accepted_has_no_ratio():
    found = audit(np.zeros(200), sensitive_features=np.tile([0, 1], 100), **QUICK)
    assert found.selection_ratio.value is None
    assert "Nobody is selected" in found.refusals[0]


def test_without_features_the_fair_matching_has_the_wasserstein_gap(labelled):
    scores, _, group, _ = labelled
    found = audit(scores, sensitive_features=group, n_resamples=100)
    (fair,) = found.matching.matched_gaps
    assert fair.gap.value == pytest.approx(found.gap("wasserstein_parity_gap").value)
    assert not found.matching.is_sample
    assert found.individuals.columns == {}
    assert found.individuals.pairs["fair"].distance == ()


def test_appendix_b_models_are_told_apart_by_their_transport_cost():
    unreasonable, reasonable, group, X = appendix_b()
    compared = compare_models(
        {"unreasonable": unreasonable, "reasonable": reasonable},
        sensitive_features=group,
        X=X,
        **QUICK | {"n_sample": 400},
    )
    first, second = (one.matching.transport for one in compared.audits)
    assert first.relative == pytest.approx(1.5, abs=1e-4)
    assert second.relative == pytest.approx(0.0, abs=1e-9)
    # All is tied: the cost is the least one, and its range is told.
    assert first.undetermined == pytest.approx(1.0)
    assert first.relative_high == pytest.approx(2.0, abs=1e-4)
    assert [one.gap("demographic_parity_gap").value for one in compared.audits] == [0.0, 0.0]
    worst = compared.audits[0].subsets.subsets[0]
    assert worst.confirmed.value == pytest.approx(1.0)
    assert worst.conditions[0].value == pytest.approx(0.5, abs=0.01)


def test_estimators_are_scored_on_x(labelled):
    _, y, group, X = labelled
    model = LogisticRegression().fit(X, y)
    by_model = audit(model, sensitive_features=group, X=X, y_true=y, **QUICK)
    by_score = audit(model.predict_proba(X)[:, 1], sensitive_features=group, X=X, y_true=y, **QUICK)
    assert by_model == by_score
    flipped = audit(model, sensitive_features=group, X=X, y_true=y, pos_label=0, **QUICK)
    assert flipped.groups[0].base_rate.value == pytest.approx(
        1 - by_model.groups[0].base_rate.value
    )


class _CarriesGroup:
    """A model that finds the group inside X, as fairmatch's own do."""

    sensitive_column = "group"
    classes_ = np.array([0, 1])

    def predict_proba(self, X, *, sensitive_features=None):
        assert sensitive_features is None  # fairmatch's models refuse to be told twice
        score = 0.4 + 0.2 * X["group"].to_numpy()
        return np.column_stack([1 - score, score])


def test_a_sensitive_column_inside_x_is_no_feature(labelled):
    _, _, group, X = labelled
    found = audit(_CarriesGroup(), sensitive_features=group, X=X.assign(group=group), **QUICK)
    assert found.gap("mean_parity_gap").value == pytest.approx(0.2)
    assert {part.name for part in found.matching.transport.features} == {"x", "z"}


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_every_table_library_gives_the_same_audit(convert):
    scores, group, X = planted_model(400)
    X.loc[::7, "income"] = np.nan
    X.loc[::11, "job"] = None
    ours, theirs = (
        audit(scores, sensitive_features=group, X=table, **QUICK) for table in (X, convert(X))
    )
    assert ours == theirs
    assert any(values is None for values in ours.individuals.columns["income"])


def test_same_seed_same_audit_other_seed_other_sample():
    scores, group, X = planted_model(900)
    settings = {"sensitive_features": group, "X": X, **QUICK}
    assert audit(scores, **settings) == audit(scores, **settings)
    other = audit(scores, random_state=1, **settings)
    assert other.individuals.rows != audit(scores, **settings).individuals.rows
    assert other.provenance.seed == 1


def test_the_global_random_state_is_left_alone():
    scores, group, X = planted_model(300)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    audit(scores, sensitive_features=group, X=X, **QUICK)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_provenance_tells_what_was_audited(labelled, found):
    scores, y, group, X = labelled
    told = found.provenance
    assert told.version == fairmatch.__version__
    assert told.settings["n_resamples"] == 100
    assert told.settings["described_by"] == ", ".join(map(str, X.columns))
    changed = scores.copy()
    changed[0] = 0.123
    other = audit(changed, sensitive_features=group, X=X, y_true=y, **QUICK).provenance
    assert other.scores_sha256 != told.scores_sha256
    assert other.features_sha256 == told.features_sha256
    renamed = X.rename(columns={"x": "w"})
    other = audit(scores, sensitive_features=group, X=renamed, y_true=y, **QUICK).provenance
    assert other.features_sha256 != told.features_sha256


def test_a_tiny_group_is_refused_by_name():
    scores, group, X = planted_model(300)
    group = np.where(np.arange(300) < 12, "few", "many")
    found = audit(scores, sensitive_features=group, X=X, **QUICK)
    assert all(gap.value is None and "'few' has 12 rows" in gap.refused for gap in found.gaps)
    assert found.selection_ratio.value is None
    assert found.groups[0].selection_rate.value is None
    assert found.groups[1].selection_rate.value is not None
    assert found.groups[1].mean_score.low < found.groups[1].mean_score.value
    assert found.matching.refused
    assert found.subsets.subsets == ()
    assert found.individuals is None
    assert any("'few' has 12 rows" in reason for reason in found.refusals)
    stated = audit(scores, sensitive_features=group, X=X, min_group_size=10, **QUICK)
    assert stated.gap("mean_parity_gap").value is not None


def test_a_label_that_is_rare_in_a_group_is_refused_by_name(labelled):
    scores, y, group, _ = labelled
    y = np.where((group == 0) & (np.arange(len(y)) > 50), 0, y)
    found = audit(scores, sensitive_features=group, y_true=y, **QUICK)
    gap = found.gap("true_positive_gap")
    assert gap.value is None
    assert "'0'" in gap.refused
    assert "with a positive label" in gap.refused
    assert found.gap("equalized_odds_gap").refused == gap.refused
    assert found.gap("demographic_parity_gap").value is not None


def test_labels_of_one_class_leave_out_what_needs_two(labelled):
    scores, _, group, X = labelled
    found = audit(scores, sensitive_features=group, X=X, y_true=np.ones(len(scores)), **QUICK)
    assert found.gap("false_positive_gap").refused
    assert "joint" not in [m.matching for m in found.matching.matched_gaps]


def test_hostile_columns_are_audited_or_named():
    scores, group, X = planted_model(300)
    odd = X.assign(constant=1, **{"<script>": "a", "empty text": ""})
    found = audit(scores, sensitive_features=group, X=odd, **QUICK)
    costs = {part.name: part.cost for part in found.matching.transport.features}
    assert costs["constant"] == costs["<script>"] == 0.0
    for bad, error, said in [
        (X.assign(when=pd.Timestamp("2020-01-01")), ColumnError, "'when'"),
        (X.assign(far=np.inf), InputError, "'far'"),
        (X.assign(nothing=np.nan), InputError, "'nothing'"),
        (X.assign(mixed=[1, "a"] * 150), InputError, "'mixed'"),
        (X.iloc[:-1], InputError, "299 rows"),
        (X.iloc[:, :0], InputError, "0 feature"),
    ]:
        with pytest.raises(error, match=said):
            audit(scores, sensitive_features=group, X=bad, **QUICK)


def test_a_column_that_identifies_people_is_refused():
    scores, group, X = planted_model(1200)
    named = X.assign(name=[f"person {k}" for k in range(len(X))])
    with pytest.raises(InputError, match=r"'name' has 1200 different values.*ids"):
        audit(scores, sensitive_features=group, X=named, **QUICK)


@pytest.mark.parametrize("written", ["${:,.2f}", "{:.2f} €", "{}%"])
def test_money_in_words_is_not_taken_for_names(written):
    scores, groups = np.linspace(0, 1, 1200), ["a", "b"] * 600
    X = pd.DataFrame({"income": [written.format(1000 + row) for row in range(1200)]})
    told = "Column 'income' holds numbers with signs, such as .* Turn it into numbers"
    with pytest.raises(InputError, match=told):
        audit(scores, sensitive_features=groups, X=X)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"y_score": ["high"] * 100}, InputError, "numeric"),
        ({"y_score": np.full(100, np.nan)}, InputError, "100 missing scores"),
        ({"y_score": np.full(100, 2.0)}, InputError, r"\[0, 1\]"),
        ({"y_score": np.full(99, 0.5)}, InputError, "99 rows where 100"),
        ({"sensitive_features": np.zeros(100)}, GroupError, "one group only"),
        ({"sensitive_features": {"sex": np.arange(100) % 2}}, InputError, "dictionary"),
        ({"sensitive_features": [None, "a"] * 50}, GroupError, "50 missing"),
        ({"y_true": np.arange(100) % 3}, LabelError, "two classes"),
        ({"y_true": np.zeros(99)}, InputError, "99 rows"),
        ({"ids": np.arange(99)}, InputError, "ids has 99"),
        ({"confidence": 1.0}, InputError, "confidence"),
        ({"n_resamples": 0}, InputError, "n_resamples"),
        ({"min_group_size": 1}, InputError, "min_group_size"),
        ({"y_score": LogisticRegression()}, InputError, "needs X"),
        ({"y_score": lambda x: x}, InputError, "predict_proba"),
    ],
)
def test_what_cannot_be_audited_is_said(change, error, said):
    given = {"y_score": np.full(100, 0.5), "sensitive_features": np.arange(100) % 2, **change}
    with pytest.raises(error, match=said):
        audit(given.pop("y_score"), **given)


def test_comparison_has_the_facts_of_the_measures(labelled):
    scores, y, group, X = labelled
    fair = np.clip(scores + 0.1 * (0.5 - group), 0, 1)
    compared = compare_models(
        {"plain": scores, "fair": fair, "flat": np.full(len(scores), 0.5)},
        sensitive_features=group,
        X=X,
        y_true=y,
        privileged=1,
        **QUICK,
    )
    assert [one.model_name for one in compared.audits] == ["plain", "fair", "flat"]
    assert len({one.individuals.rows for one in compared.audits}) == 1
    pair, flat = compared.pairs
    assert (pair.model, pair.reference) == ("fair", "plain")
    known = measures.rank_agreement(scores, fair, sensitive_features=group)
    assert pair.rank_agreement == {str(label): value for label, value in known.items()}
    flips = measures.undesirable_flips(scores, fair, sensitive_features=group, privileged=1)
    assert pair.undesirable_flips == {str(k): v for k, v in flips.undesirable.items()}
    assert pair.decisions["0"] == tuple(flips.tables[0].ravel())
    assert flat.rank_agreement == {"0": None, "1": None}
    alone = audit(scores, sensitive_features=group, X=X, y_true=y, model_name="plain", **QUICK)
    assert alone == compared.audits[0]


def test_comparison_needs_two_models_and_a_known_group(labelled):
    scores, _, group, _ = labelled
    with pytest.raises(InputError, match="at least two"):
        compare_models({"a": scores}, sensitive_features=group)
    with pytest.raises(GroupError, match="'men'"):
        compare_models({"a": scores, "b": scores}, sensitive_features=group, privileged="men")
    both = {"a": scores, "b": scores}
    with pytest.raises(TypeError, match=r"compare_models\(\) got .* 'thresold'"):
        compare_models(both, sensitive_features=group, thresold=0.5)
    with pytest.raises(InputError, match="by is for a single model"):
        compare_models(both, sensitive_features=group, by=group)


@pytest.mark.parametrize("kind", ["probability", "number"])
@pytest.mark.parametrize("name", ["y_score", "y_true", "X", "ids"])
@pytest.mark.parametrize("n_rows", [99, 101])
def test_lengths_are_checked_before_rows_of_weight_0_are_left_out(kind, name, n_rows):
    given = {"y_score": np.arange(100) % 2, "sensitive_features": np.arange(100) // 50}
    given |= {"sample_weight": np.arange(100) > 3, "kind": kind}
    given |= {"y_true": np.arange(100) % 2, name: np.arange(n_rows) % 2}
    if name == "X":
        given["X"] = given["X"][:, None]
    with pytest.raises(InputError, match=f"{name} has {n_rows} rows where 100 were expected"):
        audit(given.pop("y_score"), **given)


def test_predictions_and_their_target_are_explained_by_their_kind():
    hours, groups = np.linspace(20.0, 60.0, 100), np.arange(100) % 2
    with pytest.raises(InputError, match=r"y_score must lie in \[0, 1\].*kind='number'"):
        audit(hours, sensitive_features=groups, y_true=hours)
    with pytest.raises(InputError, match="kind='number'"):
        compare_models({"a": hours, "b": hours}, sensitive_features=groups, y_true=hours)


@pytest.mark.parametrize("several", [list, set, np.array])
def test_several_groups_may_be_favoured(several):
    generator = np.random.default_rng(0)
    groups = generator.choice(["a", "b", "c"], 300)
    scores, fair = generator.random((2, 300))
    given = {"sensitive_features": groups, "privileged": several(["c", "a"])}
    found = compare_models({"plain": scores, "fair": fair}, **given, **QUICK)
    flips = measures.undesirable_flips(scores, fair, **given)
    assert found.pairs[0].undesirable_flips == flips.undesirable
    assert found.privileged == "a; c"
    with pytest.raises(GroupError, match="names 3 of 3 groups"):
        compare_models({"p": scores, "f": fair}, **given | {"privileged": ["a", "b", "c"]})


def test_an_audit_loads_neither_torch_nor_plotting():
    code = (
        "import sys, fairmatch; fairmatch.audit; "
        "print([m for m in ('torch', 'altair', 'matplotlib', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_error_is_a_fairmatch_error():
    with pytest.raises(FairmatchError):
        audit([0.5], sensitive_features=[1])


def test_the_progress_of_a_comparison_names_the_model():
    generator = np.random.default_rng(0)
    scores = {name: generator.random(80) for name in ("old", "new")}
    steps = []
    compare_models(
        scores, sensitive_features=np.repeat(["f", "m"], 40), n_resamples=100, progress=steps.append
    )
    assert steps[0] == "old: groups and gaps"
    names = [step.partition(":")[0] for step in steps]
    assert names == sorted(names, reverse=True)
    assert len(set(steps)) == len(steps)
