"""The audit of several classes, against pandas and the audit of two classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fairmatch import audit, compare_models
from fairmatch.auditing.facts import Audit
from fairmatch.exceptions import InputError
from fairmatch.measures import demographic_parity_gap, equalized_odds_gap, gap_table, gaps_by_class
from fairmatch.report import write_report

NAMES = ["Low", "Medium", "High"]
QUICK = {"n_resamples": 100, "n_sample": 100, "n_subsets": 10}


@pytest.fixture(scope="module")
def people():
    generator = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [150, 200, 120])
    X = generator.normal(size=(470, 2)) + 0.5 * (group == "b")[:, None]
    margins = X @ generator.normal(size=(2, 3)) * 2.0 + generator.gumbel(size=(470, 3))
    y = np.array(NAMES)[margins.argmax(axis=1)]
    chances = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    return pd.DataFrame(X, columns=["age", "pay"]), y, group, chances


def test_every_class_by_hand(people):
    X, y, group, chances = people
    y = np.roll(y, 7)
    found = audit(chances, sensitive_features=group, X=X, y_true=y, classes=NAMES,
                  favourable=["Low", "Medium"], **QUICK)  # fmt: skip
    decided = np.array(NAMES)[chances.argmax(axis=1)]
    table = pd.crosstab(group, decided, normalize="index")
    facts = found.classes
    assert (facts.names, facts.ordered) == (tuple(NAMES), True)
    assert facts.favourable == ("Low", "Medium")
    for own in facts.groups:
        for name in NAMES:
            share = own.shares[name]
            assert share.value == pytest.approx(table.loc[own.label, name])
            assert share.low < share.value < share.high
        inside = group == own.label
        assert own.accuracy.value == pytest.approx(np.mean((decided == y)[inside]))
        confusion = pd.crosstab(y[inside], decided[inside], normalize="index")
        for true in NAMES:
            if (y[inside] == true).sum() < 30:
                assert own.confusion[true]["Low"].refused
                continue
            for name in NAMES:
                assert own.confusion[true][name].value == pytest.approx(confusion.loc[true, name])
    gap = facts.gap("demographic_parity_gap")
    assert gap.value == demographic_parity_gap(None, chances, sensitive_features=group)
    assert gap.low <= gap.value <= gap.high
    assert facts.gap("equalized_odds_gap").value <= equalized_odds_gap(
        y, chances, sensitive_features=group, classes=NAMES
    )
    # Every class and pair, and recalls of the favourable classes where there are 30 such people.
    size = pd.crosstab(y, group)
    known = [(size.loc[name, [a, b]] >= 30).all() for name in facts.favourable
             for a, b in (("a", "b"), ("a", "c"), ("b", "c"))]  # fmt: skip
    assert len(facts.cells) == 3 * 3 + sum(known)
    # The rest is the audit of who gets a favourable class.
    good = np.isin(decided, ["Low", "Medium"]).astype(float)
    two = audit(good, sensitive_features=group, X=X, y_true=np.isin(y, ["Low", "Medium"]) * 1,
                outcome="given the class Low or Medium", **QUICK)  # fmt: skip
    assert found.gaps == two.gaps
    assert found.impact == two.impact
    low = audit((decided == "Low") * 1.0, sensitive_features=group, **QUICK)
    assert facts.impact["Low"][0].categories[0].selection_rate == (
        low.impact[0].categories[0].selection_rate
    )


def test_json_and_report(people, tmp_path):
    _, y, group, chances = people
    found = audit(chances, sensitive_features=group, y_true=y, classes=NAMES, favourable=["Low"],
                  sample_weight=np.where(np.arange(470) < 5, 0.0, 1.0), **QUICK)  # fmt: skip
    assert Audit.from_json(found.to_json()) == found
    assert found.classes.groups[0].n_rows == 145
    assert "given the class Low" in write_report(found, tmp_path / "report.html").read_text("utf-8")


def test_a_model_of_several_classes_is_audited(people):
    X, y, group, _ = people
    model = LogisticRegression().fit(X, y)
    given = {"sensitive_features": group, "X": X, "y_true": y, **QUICK}
    found = audit(model, favourable=["Low"], **given)
    assert found.classes.names == tuple(sorted(NAMES))
    assert not found.classes.ordered
    ordered = audit(model, favourable=["Low"], classes=NAMES, **given)
    assert ordered.classes.names == tuple(NAMES)
    shares = [own.classes.groups[0].shares["High"].value for own in (found, ordered)]
    assert shares[0] == shares[1]


def test_errors(people):
    X, _, group, chances = people
    with pytest.raises(InputError, match="Name them, such as favourable="):
        audit(chances, sensitive_features=group)
    with pytest.raises(InputError, match="one column per class"):
        audit(chances[:, 0], sensitive_features=group, favourable=["Low"])
    with pytest.raises(InputError, match="needs X"):
        audit(LogisticRegression().fit(X, chances.argmax(1)), sensitive_features=group,
              favourable=[0])  # fmt: skip


@pytest.mark.parametrize("copied", [False, True])
def test_copies_are_of_the_probabilities_not_of_the_decisions(people, copied):
    X, _, group, chances = people
    if copied:
        X, group, chances = (np.repeat(own, 2, axis=0) for own in (X.to_numpy(), group, chances))
    X = pd.DataFrame(X).round()
    found = audit(
        chances, sensitive_features=group, X=X, classes=NAMES, favourable=["High"], **QUICK
    )
    assert any("exact copies" in note for note in found.notes) == copied


def test_named_columns_are_put_in_the_order_of_the_classes(people):
    _, _, group, chances = people
    truth = np.array(NAMES)[chances.argmax(axis=1)]
    given = {"sensitive_features": group, "y_true": truth, **QUICK}
    known = audit(chances, classes=NAMES, favourable=["High"], **given)
    for start in ("", "score_", "P of "):
        named = pd.DataFrame(chances, columns=[f"{start}{name}" for name in NAMES])
        named = named[[f"{start}{name}" for name in sorted(NAMES)]]
        found = audit(named, classes=NAMES, favourable=["High"], **given)
        assert found.classes == known.classes
        rows = gaps_by_class(truth, named, sensitive_features=group, classes=NAMES)
        assert rows == gaps_by_class(truth, chances, sensitive_features=group, classes=NAMES)
    strange = pd.DataFrame(chances, columns=["x", "y", "z"])
    partly = pd.DataFrame(chances, columns=["Low", "Medium", "Top"])
    for own in (strange, partly):
        with pytest.raises(InputError, match="like the classes"):
            audit(own, classes=NAMES, favourable=["High"], **given)
    # Columns that are only numbered have the order of the classes.
    assert audit(pd.DataFrame(chances), classes=NAMES, favourable=["High"], **given) == known


def test_decided_classes_are_audited_like_certain_probabilities(people):
    _, _, group, chances = people
    decided = np.array(NAMES)[chances.argmax(axis=1)]
    given = {"sensitive_features": group, "classes": NAMES, "favourable": ["High", "Medium"]}
    certain = np.eye(3)[chances.argmax(axis=1)]
    found = audit(decided, **given, **QUICK)
    assert found.classes == audit(certain, **given, **QUICK).classes
    rates = gap_table(None, decided, **given)
    assert rates["demographic_parity_gap"] == demographic_parity_gap(
        None, chances, sensitive_features=group
    )


def test_two_columns_are_those_of_two_classes(people):
    _, _, group, chances = people
    share = chances[:, 1] / chances[:, :2].sum(axis=1)
    both, truth = np.column_stack([1.0 - share, share]), np.where(share > 0.4, "yes", "no")
    given = {"sensitive_features": group, "y_true": truth, **QUICK}
    known = audit(both[:, 1], pos_label="yes", **given)
    assert audit(both, **given) == known
    assert audit(both, favourable=["yes"], **given) == known
    assert audit(both, pos_label="no", **given) == audit(both[:, 0], pos_label="no", **given)
    models = {"a": both, "b": both[:, 1]}
    compared = compare_models(models, pos_label="yes", **given)
    assert compared.audits[0].gaps == compared.audits[1].gaps
