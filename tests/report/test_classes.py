"""The page of several classes: numbers by hand, and sentences that hold for every table."""

import json
from html import unescape

import numpy as np
import pandas as pd
import pytest

from fairmatch import audit, compare_models
from fairmatch.exceptions import InputError
from fairmatch.report import write_report
from fairmatch.report.explorer import explorer_json
from fairmatch.report.figures import class_figures, impact_figures, moves_figure, side_by_side

NAMES = ["Low", "Medium", "High"]
QUICK = {"n_resamples": 100, "n_sample": 60, "n_subsets": 10, "favourable": ["Low", "Medium"]}


def draw(seed=0, n=400):
    generator = np.random.default_rng(seed)
    group = np.where(np.arange(n) < 0.4 * n, "f", "m")
    chances = generator.dirichlet(np.ones(3), size=(2, n))
    y = np.array(NAMES)[generator.integers(3, size=n)]
    return group, chances, y, pd.DataFrame({"age": generator.integers(20, 60, n).astype(float)})


@pytest.fixture(scope="module")
def ordered():
    group, chances, y, X = draw()
    return compare_models(dict(zip(["plain", "fair"], chances, strict=True)), X=X, y_true=y,
                          sensitive_features=group, classes=NAMES, **QUICK)  # fmt: skip


@pytest.fixture(scope="module")
def nominal():
    group, chances, y, _ = draw()
    tables = [pd.DataFrame(own, columns=NAMES) for own in chances]
    return compare_models(dict(zip(["plain", "fair"], tables, strict=True)), y_true=y,
                          sensitive_features=group, **QUICK)  # fmt: skip


def test_shares_and_confusion_are_those_of_the_people(ordered):
    group, chances, y, _ = draw()
    decided = np.array(NAMES)[chances[0].argmax(axis=1)]
    shares, gaps, cells, confusion = class_figures(ordered.audits)
    for row in shares.rows[:2]:
        own = decided[group == row["label"]]
        for at, name in enumerate(NAMES):
            assert row[f"c{at}"].startswith(f"{100 * np.mean(own == name):.1f}%")
    assert len(shares.panels) == 2
    assert shares.legend == tuple(NAMES)
    assert shares.panels[0].chart.count('class="s1 part"') == 2 * 3
    for row in confusion.rows[:6]:
        own = (group == row["label"]) & (y == row["true"])
        assert row["people"] == own.sum()
        assert row["c2"].startswith(f"{100 * np.mean(decided[own] == 'High'):.1f}%")
    # A bar's parts fill it.
    assert len(confusion.panels) == 4
    row = cells.rows[0]
    first, second = row["label"].split(" – ")
    rates = [np.mean(decided[group == g] == row["what"]) for g in (first, second)]
    assert row["value"] == pytest.approx(rates[0] - rates[1])
    assert row["low"] <= row["value"] <= row["high"]
    assert {row["label"] for row in gaps.rows} >= {"Shares of the classes"}


def test_who_moves_between_classes(ordered, nominal):
    group, chances, _, _ = draw()
    before, after = (own.argmax(axis=1) for own in chances)
    figure = moves_figure(ordered)
    for row in figure.rows:
        old, new = row["label"].split(" → ")
        own = group == row["series"]
        n = np.sum(own & (before == NAMES.index(old)) & (after == NAMES.index(new)))
        assert (row["people"], row["value"]) == (n, pytest.approx(n / own.sum()))
    up = np.mean((after > before)[group == "f"])
    down = np.mean((after < before)[group == "f"])
    assert f"fair: of f, {up:.1%} get a higher class and {down:.1%} get a lower class." in (
        figure.reading
    )
    moved = np.mean((after != before)[group == "m"])
    assert f"fair: of m, {moved:.1%} get another class." in moves_figure(nominal).reading
    same = compare_models({"a": chances[0], "b": chances[0]}, sensitive_features=group,
                          classes=NAMES, **QUICK)  # fmt: skip
    assert "There is no move to show." in moves_figure(same).reading


def test_two_classes_have_no_such_figures(plain):
    assert class_figures([plain]) == []


def test_tables_of_each_class_against_the_rest(ordered):
    titles = [figure.title for figure in impact_figures(ordered.audits[:1])]
    assert [title.split(",")[0] for title in titles[1:]] == [
        f"Class {name} against the rest" for name in NAMES
    ]
    words = {row["what"] for row in side_by_side(ordered.audits).rows}
    assert {"accuracy of the classes", "accuracy of “given the class Low or Medium”"} <= words


def test_the_explorer_has_both_vectors(ordered):
    people = ordered.audits[0].individuals
    (first, _), (table,) = (json.loads(explorer_json(ordered.audits))[key]
                            for key in ("models", "tables"))  # fmt: skip
    assert [column["words"] for column in first["chances"]] == NAMES
    _, chances, _, _ = draw()
    for at in (0, 50, 119):
        row = people.rows[at]
        assert [c["values"][at] for c in first["chances"]] == chances[0][row].round(3).tolist()
    assert table["ids"][0] == people.ids[0]
    assert first["labels"] == ["another label", "label Low or Medium"]


def test_the_pages_say_what_is_true_of_them(ordered, nominal, tmp_path):
    page = unescape(write_report(ordered, tmp_path / "a.html").read_text("utf-8"))
    assert "the classes are in order" in page
    assert "the class with the largest probability" in page
    assert "Does a score mean the same" not in page  # decisions are no probabilities
    page = unescape(write_report(nominal, tmp_path / "b.html").read_text("utf-8"))
    assert "the classes are in order" not in page
    assert "a higher class" not in page
    assert "get the class of that label" in page


def test_without_individuals_nobody_can_be_counted(tmp_path):
    group, chances, y, _ = draw()
    # Of the f, three get High; of the m, many do.
    chances = np.where((group == "f")[:, None] & (np.arange(400) > 2)[:, None],
                       [0.4, 0.5, 0.1], chances[0])  # fmt: skip
    chances[:3] = [0.1, 0.1, 0.8]
    found = audit(chances, sensitive_features=group, y_true=y, classes=NAMES, **QUICK)
    assert found.classes.groups[0].shares["High"].value == pytest.approx(3 / 160)
    bare = found.without_individuals().classes
    first, second = bare.groups
    assert all(share.value is None for share in first.shares.values())
    assert second.shares == found.classes.groups[1].shares
    assert not [cell for cell in bare.cells if cell.given is None]
    assert all(gap.value is None for gap in bare.gaps)
    assert all(table.categories[0].n_selected is None for table in bare.impact["High"])
    page = unescape(write_report(found, tmp_path / "c.html", individuals=False).read_text("utf-8"))
    assert "1.9%" not in page
    moves = compare_models({"a": chances, "b": np.roll(chances, 1, axis=0)}, classes=NAMES,
                           sensitive_features=group, **QUICK).without_individuals()  # fmt: skip
    counts = [n for t in moves.pairs[0].moves.values() for o in t.values() for n in o.values()]
    assert all(n % 10 == 0 for n in counts)


def test_models_of_other_classes_are_not_compared():
    group, chances, _, _ = draw()
    other = pd.DataFrame(chances[1], columns=["a", "b", "High"])
    with pytest.raises(InputError, match=r"favourable|different classes"):
        compare_models({"one": pd.DataFrame(chances[0], columns=NAMES), "two": other},
                       sensitive_features=group, **QUICK)  # fmt: skip
    with pytest.raises(InputError, match="threshold was given"):
        compare_models({"one": chances[0], "two": chances[1]}, sensitive_features=group,
                       classes=NAMES, threshold=0.3, **QUICK)  # fmt: skip
