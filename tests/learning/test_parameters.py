"""Parameters of a wrong type or size: one sentence that names them, never an error from inside."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
import torch
from paper.rivals import (
    ExponentiatedGradientClassifier,
    GapRegularizedBoostingClassifier,
    LAFTRTransformer,
    RepresentationClassifier,
    SIPMTransformer,
    TransportRepairTransformer,
)
from sklearn.linear_model import LogisticRegression
from synthetic import NETWORKS, QUICK, made, people

import fairmatch
from fairmatch import (
    FTMBoostingClassifier,
    FTMBoostingRegressor,
    FTMClassifier,
    OptimalTransportMatcher,
    audit,
    fairness_path,
)
from fairmatch.exceptions import ColumnError, CouplingError, InputError
from fairmatch.measures import (
    consistency,
    demographic_parity_gap,
    gap_table,
    matched_parity_gap,
    random_subset_gaps,
    total_variation_parity_gap,
    undesirable_flips,
)
from fairmatch.people.checks import check_flag, check_number, check_weights
from fairmatch.people.encoding import TableEncoder

X, Y, GROUP = people(40)
CRITICS = [LAFTRTransformer, SIPMTransformer]
TREES = [FTMBoostingClassifier, GapRegularizedBoostingClassifier]
LEARNERS = [*NETWORKS, *CRITICS, RepresentationClassifier]

# Values of a wrong type, and those just outside of what is allowed.
COUNT = [True, "a", None, 2.5, 0, [3]]
OPTIONAL_COUNT = [True, "a", 2.5, 0]
SHARE = [True, "x", None, 0.0, float("nan")]
WEIGHT = [True, "x", None, -1.0, float("nan"), float("inf")]
FACTOR = [True, "x", None, -1.0]
FLAG = ["no", "False", None, 0, 1, [True]]
WRONG = [
    (LEARNERS, {"epochs": [True, "a", 2.5, 0, [3]], "batch_size": COUNT}),
    (LEARNERS, {name: [v for v in SHARE if v is not None] for name in ("learning_rate", "decay")}),
    (LEARNERS, {"schedule": [3, None, "fast", ["paper"]], "verbose": ["x", 0.5]}),
    (LEARNERS, {"device": [3, "abacus", ["cpu"]]}),
    (LEARNERS, {"hidden_sizes": [[[8], [8, 8]], [True], [8.0], 3]}),
    (LEARNERS, {"random_state": [True, "x", -1]}),
    ([*NETWORKS[:-1], *CRITICS, *TREES], {"fairness_weight": WEIGHT}),
    ([*NETWORKS, *CRITICS, TransportRepairTransformer], {"encoder": [3, TableEncoder, [1]]}),
    (CRITICS, {"n_components": OPTIONAL_COUNT}),
    (CRITICS, {"task_weight": WEIGHT, "reconstruction_weight": WEIGHT}),
    ([TransportRepairTransformer], {"amount": [*WEIGHT, 1.5], "n_neighbors": COUNT}),
    ([TransportRepairTransformer], {"tolerance": [*SHARE, 1.0]}),
    ([RepresentationClassifier], {"representation": [3, "laftr", TransportRepairTransformer]}),
    (TREES, {"n_estimators": COUNT, "learning_rate": SHARE, "scale_pos_weight": SHARE}),
    (TREES, {"early_stopping_rounds": OPTIONAL_COUNT, "n_jobs": [True, "a", 0.5, -2]}),
    (TREES, {"warmup": [*FACTOR, 1.0], "random_state": [True, "x", -1]}),
    ([FTMClassifier, FTMBoostingClassifier], {"max_gap": [True, "x", [0.1]]}),
    ([FTMClassifier, FTMBoostingClassifier], {"transport": [3, None, "near"]}),
    ([FTMClassifier, FTMBoostingClassifier], {"sensitive_at_prediction": FLAG}),
    ([LAFTRTransformer, FTMBoostingRegressor], {"sensitive_at_prediction": FLAG}),
    ([ExponentiatedGradientClassifier], {"max_iter": COUNT, "eps": SHARE}),
    ([ExponentiatedGradientClassifier], {"estimator": [3, "x", LogisticRegression]}),
]  # fmt: skip
CASES = [
    pytest.param(family, name, value, id=f"{family.__name__}-{name}={value!r:.20}")
    for families, parameters in WRONG
    for family in families
    for name, values in parameters.items()
    for value in values
]


@pytest.mark.parametrize(("family", "name", "value"), CASES)
def test_a_wrong_parameter_is_named(family, name, value):
    quick = QUICK if family in LEARNERS else {}
    with pytest.raises(InputError, match=rf"\b{name}\b"):
        made(family, **{**quick, name: value}).fit(X, Y, sensitive_features=GROUP)


@pytest.mark.parametrize("max_gap", [None, 0.1])
@pytest.mark.parametrize("family", [FTMClassifier, FTMBoostingClassifier])
@pytest.mark.parametrize(
    "settings",
    [
        {"confidence": 2},
        {"gap_measure": ["mean_parity_gap"]},
        {"gap_measure": 3},
        {"validation_size": "x"},
        {"validation_size": None},
        {"fairness_weight": "3"},
        {"fairness_weight": "abc"},
        {"fairness_weight": ["a"]},
        {"fairness_weight": [[1.0], [1.0, 2.0]]},
        {"fairness_weight": []},
    ],
    ids=str,
)
def test_choosing_by_a_gap(family, settings, max_gap):
    (name,) = settings
    with pytest.raises(InputError, match=name.removesuffix("s")):
        made(family, max_gap=max_gap, **settings).fit(X, Y, sensitive_features=GROUP)


@pytest.mark.parametrize("name", fairmatch.__all__)
def test_every_parameter_of_an_estimator_is_described(name):
    family = getattr(fairmatch, name)
    if not hasattr(family, "get_params"):
        return
    described = inspect.getdoc(family).split("Attributes\n---")[0]
    assert re.findall(r"^(\w+) : ", described, re.MULTILINE) == list(
        inspect.signature(family).parameters
    )


def test_a_confidence_is_about_a_bound():
    with pytest.raises(InputError, match=r"confidence=0\.95 needs max_gap"):
        made(FTMBoostingClassifier, confidence=0.95).fit(X, Y, sensitive_features=GROUP)


@pytest.mark.parametrize("amount", ["x", None, True, 2])
def test_what_a_representation_has_wrong_is_named_by_its_classifier(amount):
    model = made(RepresentationClassifier, TransportRepairTransformer(amount), **QUICK)
    with pytest.raises(InputError, match="amount must be a number in"):
        model.fit(X, Y, sensitive_features=GROUP)


@pytest.mark.parametrize(
    "model",
    [
        made(FTMClassifier, **QUICK),
        made(FTMClassifier, fairness_weight=0.0, **QUICK),
        made(FTMBoostingClassifier, n_estimators=2),
        TransportRepairTransformer(),
        made(RepresentationClassifier, **QUICK),
    ],
    ids=str,
)
@pytest.mark.parametrize("coupling", [3, "x", [[0, 1]], OptimalTransportMatcher()], ids=str)
def test_a_coupling_that_is_none(model, coupling):
    with pytest.raises(CouplingError, match="coupling must be a Coupling"):
        model.fit(X, Y, sensitive_features=GROUP, coupling=coupling)


@pytest.mark.parametrize(
    ("measure", "coupling"),
    [(matched_parity_gap, 3), (matched_parity_gap, None), (gap_table, "x"), (gap_table, [0])],
)
def test_a_coupling_that_is_none_is_not_measured(measure, coupling):
    with pytest.raises(CouplingError, match="coupling must be a Coupling"):
        measure(None, Y, sensitive_features=GROUP, coupling=coupling)


@pytest.mark.parametrize("weights", [3, "abc", ["1"], [None], [True], [[1.0]], [], [-1.0]], ids=str)
@pytest.mark.parametrize(
    "estimator",
    [
        made(FTMClassifier, **QUICK),
        made(FTMBoostingClassifier, n_estimators=2),
        made(RepresentationClassifier, made(LAFTRTransformer, epochs=1), **QUICK),
    ],
    ids=lambda e: type(e).__name__,
)
def test_weights_of_a_path(estimator, weights):
    with pytest.raises(InputError, match="fairness_weight"):
        fairness_path(X, Y, sensitive_features=GROUP, fairness_weights=weights, estimator=estimator)


@pytest.mark.parametrize("estimator", [3, LogisticRegression(), FTMClassifier], ids=str)
def test_a_path_of_something_else(estimator):
    with pytest.raises(InputError, match="estimator"):
        fairness_path(X, Y, sensitive_features=GROUP, estimator=estimator)


@pytest.mark.parametrize("column", [True, 2.5, ["group"], [2.5], [9]], ids=str)
@pytest.mark.parametrize(
    "table", [X, pd.DataFrame(X, columns=list("abcd"))], ids=["array", "frame"]
)
def test_a_column_of_groups_that_is_neither_name_nor_position(column, table):
    with pytest.raises(ColumnError, match="no column"):
        TransportRepairTransformer(sensitive_column=column).fit(table)


def test_a_position_may_be_of_numpy():
    rows = np.column_stack([X, GROUP])
    for table in (rows, pd.DataFrame(rows, columns=list("abcde"))):
        model = TransportRepairTransformer(sensitive_column=np.int64(4)).fit(table)
        assert model.transform(table).shape == (40, 4)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("label_weight", lambda: OptimalTransportMatcher(label_weight="x")),
        ("batch_size", lambda: OptimalTransportMatcher(batch_size=2.5)),
        ("batch_size", lambda: OptimalTransportMatcher(batch_size=True)),
        ("tolerance", lambda: OptimalTransportMatcher(tolerance=None)),
        ("tolerance", lambda: OptimalTransportMatcher(tolerance=1.0)),
        ("dtype", lambda: TableEncoder(dtype="x").fit(X)),
        ("missing", lambda: TableEncoder(missing=3).fit(X)),
        ("n_subsets", lambda: random_subset_gaps(
            None, Y, sensitive_features=GROUP, X=X, n_subsets="x")),
        ("bins", lambda: total_variation_parity_gap(None, Y, sensitive_features=GROUP, bins="x")),
        ("n_resamples", lambda: audit(Y, sensitive_features=GROUP, n_resamples="x")),
        ("n_sample", lambda: audit(Y, sensitive_features=GROUP, n_sample=True)),
        ("confidence", lambda: audit(Y, sensitive_features=GROUP, confidence="x")),
        ("random_state", lambda: audit(Y, sensitive_features=GROUP, random_state="x")),
        ("random_state", lambda: audit(Y, sensitive_features=GROUP, random_state=-1)),
        ("random_state", lambda: OptimalTransportMatcher(random_state="x")),
        ("random_state", lambda: OptimalTransportMatcher(random_state=-1, batch_size=4)),
        ("random_state", lambda: random_subset_gaps(
            None, Y, sensitive_features=GROUP, X=X, random_state=-1)),
        ("threshold", lambda: audit(Y, sensitive_features=GROUP, threshold="x")),
        ("threshold", lambda: demographic_parity_gap(
            None, Y, sensitive_features=GROUP, threshold=float("nan"))),
        ("threshold", lambda: gap_table(None, Y, sensitive_features=GROUP, threshold="0.5")),
        ("threshold", lambda: consistency(Y, Y, threshold=None)),
        ("threshold", lambda: undesirable_flips(
            Y, Y, sensitive_features=GROUP, privileged=1, threshold=[0.5])),
    ],
)  # fmt: skip
def test_functions_and_matchers(name, call):
    with pytest.raises(InputError, match=rf"\b{name} must be"):
        call()


@pytest.mark.parametrize(
    "settings",
    [
        {"verbose": True},
        {"verbose": -1},
        {"sensitive_at_prediction": np.False_},
        {"device": torch.device("cpu")},
        {"epochs": np.int64(1), "batch_size": np.int32(8)},
        {"learning_rate": np.float32(0.01), "decay": 1, "fairness_weight": np.int64(2)},
        {"hidden_sizes": np.array([4, 4])},
        {"hidden_sizes": ()},
    ],
    ids=str,
)
def test_what_is_allowed_stays_so(settings):
    made(FTMClassifier, **{**QUICK, "epochs": 1, **settings}).fit(X, Y, sensitive_features=GROUP)


class TestChecks:
    @pytest.mark.parametrize(
        ("within", "inside", "outside"),
        [
            ("[0, 1)", [0, 0.5, np.float32(0.9)], [-1e-9, 1, 1.0, np.nan]),
            ("(0, 1]", [1, 1e-300, np.int64(1)], [0, 0.0, 1.1, np.inf]),
            ("[0, inf)", [0, 1e300], [np.inf, -1]),
            ("[0, inf]", [np.inf], [np.nan]),
        ],
    )
    def test_numbers(self, within, inside, outside):
        for value in inside:
            check_number("x", value, within)
        for value in [*outside, True, np.False_, "1", None, [0.5], np.array(0.5), 1j]:
            with pytest.raises(InputError, match=r"x must be a number in .*, got ") as caught:
                check_number("x", value, within)
            assert within in str(caught.value)

    def test_flags(self):
        check_flag("x", np.True_)
        told = "^x must be True or False, got 'no'. Pass one of the two.$"
        with pytest.raises(InputError, match=told):
            check_flag("x", "no")

    def test_weights(self):
        check_weights("weight", pd.Series([0, 1.0]), "[0, 1]")
        with pytest.raises(InputError, match=r"weight must be a number in \[0, 1\], got 2"):
            check_weights("weight", [0.5, 2], "[0, 1]")
