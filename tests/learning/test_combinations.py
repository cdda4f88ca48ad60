"""Every cell of the page that says what combines with what, and every combination of them."""

import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.linear_model import LogisticRegression, Ridge

import fairmatch
from fairmatch import (
    GapMonitor,
    NeuralNetwork,
    assert_gap,
    audit,
    explain,
    group_probabilities,
    to_onnx,
)
from fairmatch.exceptions import FairmatchError, FairmatchWarning, GroupError, InputError
from fairmatch.measures import gap_table

PAGE = Path(__file__).parents[2] / "docs" / "explain" / "combinations.md"
CRITERIA = ("demographic_parity", "equal_opportunity", "equalized_odds")
COLUMNS = (*CRITERIA, "given", "memberships", "several", "numbers")
NETWORK = NeuralNetwork((4,), epochs=1, batch_size=64)
TREES = {"n_estimators": 2, "num_leaves": 3, "n_jobs": 1, "verbose": -1}
# By the name of a row: the estimator's settings for classes, and for numbers.
MODELS = {
    "FTMBoostingClassifier": (LGBMClassifier(**TREES), LGBMRegressor(**TREES), {}),
    "FTMClassifier": (NETWORK, NETWORK, {}),
    "QuantileAlignmentClassifier": (LogisticRegression(), Ridge(), {"cv": 2}),
    "MatchSmoothingClassifier": (LogisticRegression(), Ridge(), {"cv": 2}),
    "GroupBlindClassifier": (LogisticRegression(), None, {"cv": 2}),
}


def read_page():
    """Return the cells of the table, by row and column."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {name: dict(zip(COLUMNS, own, strict=True)) for name, *own in cells}


CELLS = read_page()
LEARNERS = [name for name in CELLS if name.strip("`").split("(")[0] in MODELS]


def table(n_rows=100):
    generator = np.random.default_rng(0)
    group = np.resize(["a", "b"], n_rows)
    X = pd.DataFrame(generator.normal(size=(n_rows, 2)), columns=["pay", "age"])
    X["job"] = np.repeat([0, 1], n_rows // 2)
    wanted = X["pay"] + 0.5 * (group == "a") + generator.normal(size=n_rows)
    soft = np.clip(np.where(group == "a", 0.8, 0.2) + 0.1 * generator.normal(size=n_rows), 0, 1)
    soft = group_probabilities(np.column_stack([soft, 1.0 - soft]), labels=["a", "b"])
    labels = {
        "two": (wanted > 0).astype(int),
        "several": np.digitize(wanted, [-0.5, 0.5]),
        "numbers": np.asarray(wanted),
    }
    return X, labels, group, soft


X, LABELS, GROUP, SOFT = table()


def is_supported(cells, criterion, given, memberships, outcome):
    """Return what the page says about a combination."""
    used = [criterion, *["given"] * given, *["memberships"] * memberships]
    if outcome != "two":
        used.append(outcome)
    texts = [cells[name] for name in used]
    if any(text.startswith("no") for text in texts):
        return False
    if outcome == "several" and any("two classes only" in text for text in texts):
        return False
    return criterion == CRITERIA[0] or not any("parity only" in text for text in texts)


def fit(row, criterion, given, memberships, outcome):
    name = row.strip("`").split("(")[0]
    classifier, regressor, settings = MODELS[name]
    numbers = outcome == "numbers" and "Regressor" in CELLS[row]["numbers"]
    settings = {**settings, "estimator": regressor if numbers else classifier}
    family = getattr(fairmatch, name.replace("Classifier", "Regressor") if numbers else name)
    if "decisions" in row:
        settings["decisions"] = row.split('"')[1]
    if criterion != CRITERIA[0]:
        settings["criterion"] = criterion
    if given:
        settings["given"] = "job"
    if memberships and "sensitive_at_prediction" in CELLS[row]["memberships"]:
        settings["sensitive_at_prediction"] = False
    if numbers:
        settings.pop("decisions", None)
    groups = SOFT if memberships else GROUP
    model = family(**settings).fit(X, LABELS[outcome], sensitive_features=groups)
    beside = {} if memberships or name.startswith("GroupBlind") else {"sensitive_features": GROUP}
    return model.predict(X, **beside)


# Every cell alone, and two combinations of several cells.
ASKED = [
    *((criterion, False, False) for criterion in CRITERIA),
    (CRITERIA[0], True, False),
    (CRITERIA[0], False, True),
    (CRITERIA[1], False, True),
    (CRITERIA[2], True, True),
]


@pytest.mark.parametrize("row", LEARNERS)
@pytest.mark.parametrize("outcome", ["two", "several", "numbers"])
def test_learners(row, outcome):
    for criterion, given, memberships in ASKED:
        asked = criterion, given, memberships, outcome
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairmatchWarning)
            if is_supported(CELLS[row], *asked):
                assert len(fit(row, *asked)) == len(X), asked
                continue
            # A constructor may lack the parameter.
            with pytest.raises((FairmatchError, TypeError)) as caught:
                fit(row, *asked)
        told = str(caught.value)
        if isinstance(caught.value, TypeError):
            assert "argument 'given'" in told or "argument 'criterion'" in told, asked
        elif "criterion" in told:
            assert criterion in told, asked
        elif memberships and "regressor" not in told:
            assert "group_probabilities" in told, asked
            assert row.strip("`").split("Classifier")[0] in told, asked
        else:
            assert "regressor" in told, asked


SCORES = {
    "two": np.random.default_rng(1).random(len(X)),
    "several": np.random.default_rng(1).dirichlet(np.ones(3), len(X)),
    "numbers": LABELS["numbers"],
}
GAPS = {
    "gaps of decisions": ("demographic_parity_gap", "true_positive_gap", "equalized_odds_gap"),
    "mean and Wasserstein gaps": ("mean_parity_gap", "wasserstein_parity_gap"),
    "total variation, Kolmogorov–Smirnov, false positive gap": (
        *("total_variation_parity_gap", "ks_parity_gap", "false_positive_gap"),
    ),
}


@pytest.mark.parametrize("outcome", ["two", "several", "numbers"])
@pytest.mark.parametrize("row", GAPS)
def test_measures(row, outcome):
    y, scores = LABELS[outcome], SCORES[outcome]
    for given, memberships in product((None, X["job"]), (False, True)):
        groups = SOFT if memberships else GROUP
        if outcome == "numbers" and CELLS[row]["numbers"] == "yes":
            kept = gap_table(y, scores, sensitive_features=GROUP, kind="number")
            assert set(GAPS[row]) <= set(kept)
            continue
        for name in GAPS[row]:
            measure = getattr(fairmatch.measures, name)
            if outcome != "two" and CELLS[row][outcome].startswith("no"):
                with pytest.raises(InputError, match=r"classes, and|must lie in \[0, 1\]"):
                    measure(y, scores, sensitive_features=groups, given=given)
            else:
                assert measure(y, scores, sensitive_features=groups, given=given) >= 0.0


@pytest.mark.parametrize("outcome", ["two", "several", "numbers"])
def test_audits(outcome):
    more = {"several": {"favourable": [2]}, "numbers": {"kind": "number"}}.get(outcome, {})
    cell = CELLS["`audit`"]["memberships"]
    assert "two classes" in cell
    assert "numbers" in cell
    assert "without `given`" in cell
    for given, memberships in product((None, "job"), (False, True)):
        asked = {"X": X, "y_true": LABELS[outcome], "given": given, **more}
        groups = SOFT if memberships else GROUP
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairmatchWarning)
            if memberships and (given or outcome == "several"):
                with pytest.raises(InputError, match=r"several classes|given was given"):
                    audit(SCORES[outcome], sensitive_features=groups, **asked)
            else:
                assert audit(SCORES[outcome], sensitive_features=groups, **asked)


def ask(row, criterion, given, memberships, outcome):
    """Do what a row about something other than learners says, for one combination."""
    y, groups = LABELS[outcome], SOFT if memberships else GROUP
    asked = {"sensitive_features": groups}
    gap = dict(zip(CRITERIA, GAPS["gaps of decisions"], strict=True))[criterion]
    if row == "`GapMonitor`":
        assert not given  # it has no such parameter
        monitor = GapMonitor(0.3, groups=["a", "b"], measure=gap)
        return monitor.update(SCORES[outcome], groups, y if outcome == "two" else None)
    settings = {
        "`max_gap`": {"max_gap": 0.9, "gap_measure": "matched_parity_gap"},
        "`calibrate=True`": {"calibrate": True},
    }.get(row.split(" ")[0], {})
    if outcome == "numbers":
        model = fairmatch.FTMBoostingRegressor(LGBMRegressor(**TREES), **settings)
    else:
        model = fairmatch.FTMBoostingClassifier(
            LGBMClassifier(**TREES), criterion=criterion, **settings
        )
    asks_for_given = given and row not in ("`assert_gap`", "`explain`")
    model.set_params(sensitive_at_prediction=not memberships, given="job" * asks_for_given or None)
    model.fit(X, y, **asked)
    if "to_onnx" in row:
        return to_onnx(model)
    if row == "`explain`":
        return explain(model, X, rows=1, **asked)
    if row == "`assert_gap`":
        more = {"favourable": [2]} if outcome == "several" else {}
        more |= {"given": X["job"]} if given else {}
        more |= {"n_resamples": 100, "min_group_size": 10}
        return assert_gap(model, X, y, max_gap=0.9, measure=gap, **asked, **more)
    return model


OTHERS = [name for name in CELLS if name not in LEARNERS and name not in (*GAPS, "`audit`")]


@pytest.mark.parametrize("row", OTHERS)
@pytest.mark.parametrize("outcome", ["two", "several", "numbers"])
def test_other_rows(row, outcome):
    if "to_onnx" in row:
        pytest.importorskip("onnx")
    wanted = ASKED[:5] if outcome == "two" else ASKED[:1]
    for criterion, given, memberships in wanted:
        cells = [CELLS[row][criterion], *[CELLS[row]["given"]] * given]
        cells += [CELLS[row]["memberships"]] * memberships
        if outcome != "two":
            cells.append(CELLS[row][outcome])
        if "–" in cells or (row == "`GapMonitor`" and given):
            continue
        asked = row, criterion, given, memberships, outcome
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairmatchWarning)
            if any(cell.startswith("no") for cell in cells):
                # Regressors have no such parameter.
                expected = TypeError if "calibrate" in row and outcome == "numbers" else InputError
                with pytest.raises((expected, GroupError)):
                    ask(*asked)
            else:
                ask(*asked)


def test_a_scorer_of_two_classes_is_refused_for_several():
    model = fairmatch.FTMBoostingClassifier(LGBMClassifier(**TREES), max_gap=0.5)
    with pytest.raises(InputError, match="scoring and 3 classes do not combine"):
        model.set_params(scoring="roc_auc").fit(X, LABELS["several"], sensitive_features=GROUP)
    model.set_params(scoring="roc_auc_ovr").fit(X, LABELS["several"], sensitive_features=GROUP)
