"""Explanations, beside brute force and beside the library's own nearest fair matching."""

import shutil
import subprocess
import time

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairmatch import FTMBoostingClassifier, audit, explain, load, nearest_fair_matching
from fairmatch.auditing.explain import Explainer
from fairmatch.auditing.facts import Audit
from fairmatch.exceptions import InputError
from fairmatch.people.encoding import TableEncoder


def people(n=60, seed=0, groups=("a", "b")):
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": generator.integers(20, 60, n).astype(float),
            "town": generator.choice(["x", "y", "z"], n),
            "amount": generator.normal(size=n),
        }
    )
    group = np.array([groups[k % len(groups)] for k in range(n)])
    return frame, group, generator.random(n)


def test_the_nearest_are_those_of_brute_force():
    frame, group, scores = people(groups=("a", "b", "c"))
    points = TableEncoder().fit(frame).to_points(frame)
    for row in (0, 7, 31):
        found = explain(scores, frame, sensitive_features=group, rows=row, n_nearest=2)
        far = points.pair_costs(np.full(60, row), np.arange(60))
        for label in set("abc") - {group[row]}:
            expected = np.sort(far[group == label])[:2]
            mine = [one.distance for one in found.nearest if one.group == label]
            assert mine == pytest.approx(expected)
        others = (group == group[row]) & ((scores >= 0.5) != (scores[row] >= 0.5))
        assert found.flip.distance == pytest.approx(far[others].min())
        assert scores[int(found.flip.id)] == found.flip.score


@pytest.mark.parametrize("seed", range(5))
def test_matched_people_are_pairs_of_the_nearest_fair_matching(seed):
    frame, group, scores = people(seed=seed)
    points = TableEncoder().fit(frame).to_points(frame)
    explainer = Explainer(scores, frame, sensitive_features=group)
    partners = [int(explainer.explain(row).matched[0].id) for row in range(60)]
    rows = np.arange(60)
    coupling = nearest_fair_matching(scores, group, points)
    assert np.abs(scores - scores[partners]).mean() == pytest.approx(coupling.gap(scores))
    cost = points.pair_costs(rows, np.array(partners)).mean()
    assert cost == pytest.approx(coupling.transport_cost(points))


def test_people_outside_the_sample_are_matched_by_the_duals(monkeypatch):
    """Everybody in the sample has the least reduced cost at the matched person."""
    frame, group, scores = people(200)
    explainer = Explainer(scores, frame, sensitive_features=group)
    monkeypatch.setattr("fairmatch.auditing.counterparts._SAMPLE", 40)
    assert {len(explainer.explain(row).matched) for row in range(0, 200, 7)} == {1}
    for (own, _), (rows, dual, price, partners) in explainer._duals.items():
        for row, partner in partners.items():
            cost = explainer.points.pair_costs(np.full(len(rows), row), rows)
            cost += price * np.abs(scores[row] - scores[rows])
            reduced = cost - dual
            assert reduced[list(rows).index(partner)] == pytest.approx(reduced.min(), abs=1e-6)
            assert explainer.groups.codes[row] == own


def test_sentences_facts_and_the_plain_model():
    frame, group, scores = people()
    row = int(np.argmax(scores < 0.5))
    plain = np.where(np.arange(60) == row, 0.9, scores)
    found = explain(scores, frame, sensitive_features=group, rows=[row], plain=plain)[0]
    assert "decision is different: selected" in str(found)
    assert found.to_dict()["plain_score"] == 0.9
    assert "<li>" in found._repr_html_()
    difference = found.nearest[0].differing[0]
    assert difference.change is None or np.isfinite(difference.change)


def test_prototypes_show_nobody_and_letters_show_them(tmp_path):
    frame, group, scores = people(80)
    near = explain(scores, frame, sensitive_features=group, rows=3)
    found = explain(scores, frame, sensitive_features=group, rows=3, prototype=10)
    assert (near.prototypes, near.flip_prototype) == (found.nearest, found.flip)
    shown = [*found.nearest, found.flip]
    assert [one.id for one in shown] == [None, None]
    assert [one.n_people for one in shown] == [10, 10]
    assert found.matched == ()
    text = found.letter(tmp_path / "letter.html", sender="<Bank>").read_text()
    assert near.letter(tmp_path / "same.html", sender="<Bank>").read_text() == text
    assert "&lt;Bank&gt;" in text
    assert "size: A4" in text
    points = TableEncoder().fit(frame).to_points(frame)
    far = points.pair_costs(np.full(80, 3), np.arange(80))
    others = np.flatnonzero(group != group[3])
    kept = others[np.argsort(far[others])[:10]]
    assert found.nearest[0].score == pytest.approx(np.median(scores[kept]))
    with pytest.raises(InputError):
        explain(scores, frame, sensitive_features=group, rows=3, prototype=5)


def test_too_few_people_for_a_prototype_are_not_called_nobody():
    frame, group, _ = people(40)
    scores = np.where(np.arange(40) < 6, 0.9, 0.1)
    found = explain(scores, frame, sensitive_features=group, rows=20, prototype=10)
    assert (found.flip, found.n_other) == (None, 3)
    assert "Too few people in group a" in str(found)
    alone = explain(np.full(40, 0.1), frame, sensitive_features=group, rows=20)
    assert "Nobody in group a has the other decision" in str(alone)


def test_somebody_without_a_group_has_nearest_people_and_no_match():
    frame, group, scores = people(60)
    unknown = np.where(np.arange(60) == 5, None, group)
    found = explain(scores, frame, sensitive_features=unknown, rows=5)
    assert {one.group for one in found.nearest} == {"a", "b"}
    assert found.matched == ()


@pytest.mark.parametrize("n_groups", [2, 8])
def test_a_letter_fits_on_one_side(tmp_path, n_groups):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no browser")
    frame, group, scores = people(20 * n_groups, groups="abcdefgh"[:n_groups])
    frame = frame.assign(**{f"a column with a long name {k}": np.roll(scores, k) for k in range(9)})
    found = explain(scores, frame, sensitive_features=group, rows=0, plain=scores)
    path = found.letter(tmp_path / "letter.html", sender="The bank")
    printed = tmp_path / "letter.pdf"
    how = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    subprocess.run(
        [chromium, *how, f"--print-to-pdf={printed}", path.as_uri()], check=True, timeout=120
    )
    pdf = printed.read_bytes()
    assert pdf.count(b"/Type /Page\n") == 1


def test_an_audit_explains_everybody_and_a_file_its_sample():
    frame, group, scores = people(120)
    ids = [f"p{k}" for k in range(120)]
    found = audit(scores, sensitive_features=group, X=frame, ids=ids, n_sample=31, n_resamples=100)
    everybody = [found.explain(one) for one in ids[::17]]
    expected = explain(scores, frame, sensitive_features=group, rows=range(0, 120, 17), ids=ids)
    assert everybody == expected
    assert found._neighbourhood() is found._neighbourhood()  # so the second call is quick
    again = Audit.from_json(found.to_json())
    known = again.individuals.ids[5]
    assert again.explain(known).score == found.explain(known).score
    strange = next(one for one in ids if one not in again.individuals.ids)
    with pytest.raises(InputError, match="identifier"):
        again.explain(strange)
    bare = audit(scores, sensitive_features=group, n_resamples=100)
    with pytest.raises(InputError, match="contains no individuals"):
        bare.explain(0)


def test_an_audit_explains_beside_the_plain_model(tmp_path):
    """As `explain` does, with the model of weight 0; a saved model has none, so it is passed."""
    frame, group, scores = people(1500)
    y = (frame["amount"] + scores + 0.5 * (group == "a") > 0.7).astype(int)
    model = FTMBoostingClassifier(
        LGBMClassifier(n_estimators=5), max_gap=0.15, fairness_weight=[0.0, 1.0], random_state=0
    ).fit(frame, y, sensitive_features=group)
    own = {"sensitive_features": group, "X": frame}
    found = audit(model, **own, n_resamples=100)
    expected = explain(model, **own, rows=[3, 5])
    assert [found.explain(row) for row in (3, 5)] == expected
    plain = model.path_.models[0]
    chances = plain.predict_proba(frame, sensitive_features=group)[:, 1]
    assert [one.plain_score for one in expected] == chances[[3, 5]].tolist()
    plain.save(tmp_path / "plain")
    again = load(model.save(tmp_path / "model"))
    assert explain(again, **own, rows=3).plain_score is None
    assert explain(again, **own, rows=3, plain=load(tmp_path / "plain")) == expected[0]


def test_rows_may_be_a_mask():
    frame, group, scores = people()
    own = {"X": frame, "sensitive_features": group}
    mask = np.isin(np.arange(60), [3, 17])
    expected = explain(scores, **own, rows=[3, 17])
    assert explain(scores, **own, rows=mask) == expected
    assert explain(scores, **own, rows=pd.Series(mask)) == expected
    assert explain(scores, **own, rows=mask.tolist()) == expected
    with pytest.raises(InputError, match="rows"):
        explain(scores, **own, rows=mask[:50])


def test_a_regressor_has_no_decisions():
    frame, group, scores = people()
    X = frame[["age", "amount"]]
    model = LinearRegression().fit(X, 100 * scores)
    found = explain(model, X, sensitive_features=group, rows=0)
    assert (found.selected, found.threshold, found.flip) == (None, None, None)
    assert "selected" not in str(found)


def test_a_copy_of_the_group_and_missing_values():
    frame, group, scores = people()
    frame["sex"] = group
    frame.loc[4, "age"] = np.nan
    found = explain(scores, frame, sensitive_features=group, rows=4)
    shown = {d.column: d.own for one in found.nearest for d in one.differing}
    assert "sex" not in shown
    assert shown["age"] is None


@pytest.mark.parametrize("rows", [60, -1, "x"])
def test_bad_rows_are_an_error(rows):
    frame, group, scores = people()
    with pytest.raises(InputError):
        explain(scores, frame, sensitive_features=group, rows=[rows])


def test_the_second_explanation_is_quick():
    frame, group, scores = people(50_000)
    explainer = Explainer(scores, frame, sensitive_features=group)
    explainer.explain(0)
    start = time.process_time()
    explainer.explain(1)
    assert time.process_time() - start < 0.5


def test_several_classes_are_refused_and_two_columns_are_read():
    generator = np.random.default_rng(0)
    X, groups = generator.normal(size=(60, 2)), np.resize(["a", "b"], 60)
    chances, given = generator.dirichlet(np.ones(3), 60), {"sensitive_features": groups}
    model = LogisticRegression().fit(X, np.resize(["Low", "Mid", "High"], 60))
    found = audit(chances, X=X, classes=["Low", "Mid", "High"], favourable=["High"],
                  n_resamples=100, n_subsets=10, **given)  # fmt: skip
    for several in (model, chances):
        with pytest.raises(InputError, match="explain and 3 classes do not combine"):
            explain(several, X, rows=1, **given)
    with pytest.raises(InputError, match="explain and 3 classes do not combine"):
        found.explain(1)
    both = np.column_stack([1.0 - chances[:, 0], chances[:, 0]])
    assert explain(both, X, rows=1, **given) == explain(both[:, 1], X, rows=1, **given)
