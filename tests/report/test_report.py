"""The report as a file: what is in it, what is not, and how it is written."""

import builtins
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hostiletable import HOSTILE_COLUMN, HOSTILE_VALUES, make_table

from fairmatch import audit
from fairmatch.auditing.facts import Individuals, Pairs
from fairmatch.exceptions import ColumnError, InputError, MissingExtraError
from fairmatch.report import sentences, write_filing, write_report
from fairmatch.report.explorer import explorer_json, explorer_lead
from fairmatch.report.wording import shown_name


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.lasttag == "script" and self.elements[-1][0] == "script":
            self.scripts.append(data)


def embedded(text, name):
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.S)
    return found and json.loads(found[1])


@pytest.fixture(scope="module")
def page(hostile, curve, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert write_report(hostile, path, curve=curve) == path
    return path.read_text("utf-8")


def test_nothing_from_the_data_becomes_markup(page):
    tags = Elements(page).elements
    assert sum(tag == "script" for tag, _ in tags) == 3  # the data, and two of the page's own
    assert not [tag for tag, _ in tags if tag in ("img", "i", "b", "iframe", "object")]
    assert not [a for _, attributes in tags for a in attributes if a.startswith("on")]


def test_data_in_scripts_cannot_end_them(page):
    start = page.index('id="people-data">') + len('id="people-data">')
    text = page[start : page.index("</script>", start)]
    assert not set("<>&\u2028\u2029") & set(text)
    (column,) = (c for c in json.loads(text)["tables"][0]["columns"] if c["name"] == HOSTILE_COLUMN)
    assert sorted(column["levels"]) == sorted(HOSTILE_VALUES)


def test_only_the_pages_own_scripts_may_run_and_nothing_may_be_loaded(page):
    elements = Elements(page).elements
    (policy,) = (a["content"] for tag, a in elements if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    script_policy = re.search("script-src ([^;]*)", policy)[1]
    assert len(script_policy.split()) == 2
    assert all(source.startswith("'sha256-") for source in script_policy.split())
    assert not [a for tag, a in elements if "src" in a or tag == "link"]
    assert not [a["href"] for tag, a in elements if not a.get("href", "#").startswith("#")]


def test_every_chart_says_what_it_shows_and_its_figure_has_the_numbers(page):
    elements = Elements(page).elements
    ids = {attributes.get("id") for _, attributes in elements}
    charts = [a for tag, a in elements if tag == "svg" and "chart" in a.get("class", "")]
    assert len(charts) >= 15
    for chart in charts:
        assert chart["role"] == "img"
        assert len(chart["aria-label"]) > 20
    figures = [a for tag, a in elements if tag == "figure" and "id" in a]
    assert len(figures) >= 10
    for figure in figures:
        assert f"{figure['id']}-numbers" in ids


def test_without_individuals_nobodys_row_is_in_the_file(hostile, tmp_path):
    text = write_report(hostile, tmp_path / "r.html", individuals=False).read_text("utf-8")
    assert "people-data" not in text
    assert "person-7" not in text
    assert "Filter people" not in text
    assert "nobody's row" in unescape(text)


def test_the_values_of_hidden_columns_are_in_no_row(hostile, tmp_path):
    secret = replace(
        hostile,
        audits=tuple(
            replace(
                found,
                individuals=replace(
                    found.individuals,
                    columns={
                        **found.individuals.columns,
                        "diagnosis": tuple(f"secret-{k}" for k in found.individuals.ids),
                    },
                ),
            )
            for found in hostile.audits
        ),
    )
    shown = write_report(secret, tmp_path / "shown.html").read_text("utf-8")
    assert "secret-" in shown
    text = write_report(secret, tmp_path / "r.html", hide=["diagnosis"]).read_text("utf-8")
    assert "secret-" not in text
    assert "Left out of people's rows: diagnosis" in unescape(text)
    people = embedded(text, "people-data")
    assert [c["name"] for c in people["tables"][0]["columns"]] == list(
        hostile.audits[0].individuals.columns
    )
    with pytest.raises(ColumnError, match="no column 'diagnosi'"):
        write_report(secret, tmp_path / "r.html", hide=["diagnosi"])


def test_the_page_says_whose_rows_it_holds(page):
    assert "This file holds the rows of 240 people" in page


def test_same_audit_same_bytes(hostile, curve, page, tmp_path):
    again = write_report(hostile, tmp_path / "again.html", curve=curve)
    assert again.read_text("utf-8") == page


def test_no_facts_no_figures(plain, tmp_path):
    text = write_report(plain, tmp_path / "r.html").read_text("utf-8")
    for section in ("subsets", "labels", "comparison", "curve"):
        assert f'<details class="section" id="{section}"' not in text
    assert '<details class="section" id="explorer"' in text


def test_groups_too_small_are_refused_by_name_in_the_page(tmp_path):
    found = audit([0.1, 0.9] * 30, sensitive_features=["few"] * 5 + ["many"] * 55)
    text = unescape(write_report(found, tmp_path / "r.html").read_text("utf-8"))
    for reason in found.refusals:
        assert reason in text
    assert "too few people" in text
    assert len(sentences(found)) == 3


def test_fifty_thousand_rows_stay_below_six_megabytes(hostile, tmp_path):
    # As many people as an audit of 50,000 rows matches, with 100 columns and two models. They are
    # made up here, since to match so many would take longer than all the other tests together.
    generator = np.random.default_rng(0)
    n_people, half = 8192, np.arange(4096)
    columns = {f"number {k}": tuple(generator.normal(size=n_people).tolist()) for k in range(40)}
    for k in range(60):
        levels = np.array([f"level {j} of column {k}" for j in range(12)])
        columns[f"category {k}"] = tuple(levels[generator.integers(0, 12, n_people)].tolist())

    def pairs():
        gap, distance = generator.uniform(size=(2, len(half))).tolist()
        second = (4096 + generator.permutation(half)).tolist()
        mass = (1 / len(half),) * len(half)
        return Pairs(tuple(half.tolist()), tuple(second), mass, tuple(gap), tuple(distance))

    audits = [
        replace(
            found,
            n_rows=50_000,
            individuals=Individuals(
                ids=tuple(map(str, range(n_people))),
                rows=tuple(range(n_people)),
                group=(0,) * 4096 + (1,) * 4096,
                scores=tuple(generator.uniform(size=n_people).tolist()),
                labels=tuple(generator.integers(0, 2, n_people).tolist()),
                columns=columns,
                hidden=(),
                pairs={name: pairs() for name in ("fair", "marginal", "joint")},
                selected=tuple(generator.integers(0, 2, n_people).tolist()),
            ),
        )
        for found in hostile.audits
    ]
    file = write_report(audits, tmp_path / "r.html")
    assert file.stat().st_size < 6_000_000
    text = file.read_text("utf-8")
    (said,) = re.findall("The explorer lists a random sample: ([0-9,]+) of 50,000 people", text)
    tables = embedded(text, "people-data")["tables"]
    assert 500 < tables[0]["n_listed"] == int(said.replace(",", "")) < n_people


def test_a_sample_of_people_comes_with_all_their_counterparts(hostile):
    found = hostile.audits[0]
    people = found.individuals
    content = json.loads(explorer_json([found], most_bytes=20_000))
    (table,), (model,) = content["tables"], content["models"]
    assert 0 < table["n_listed"] < len(people.ids)
    where = {name: k for k, name in enumerate(people.ids)}
    for matching, pairs in model["pairs"].items():
        given = {
            frozenset((table["ids"][a], table["ids"][b]))
            for a, b in zip(pairs["first"], pairs["second"], strict=True)
        }
        listed = table["ids"][: table["n_listed"]]
        if matching == "near":
            expected = {
                frozenset((people.ids[a], people.ids[b]))
                for a, b in zip(people.near.first, people.near.second, strict=True)
                if people.ids[a] in listed
            }
            # Pairs of a listed person with somebody whose nearest person that is come along.
            given = {pair for pair in given if pair in expected}
        else:
            expected = {
                frozenset((people.ids[own.first[k]], people.ids[own.second[k]]))
                for own in [people.pairs[matching]]
                for name in listed
                for k in people.counterparts(where[name], matching=matching)
            }
        assert given == expected


def test_the_nearest_is_of_those_drawn_where_people_were_drawn(hostile, plain):
    found = hostile.audits[0]
    drawn = replace(found, matchings=tuple(replace(m, is_sample=True) for m in found.matchings))
    for one, words in (found, "nearest person"), (drawn, "nearest person of those drawn"):
        assert json.loads(explorer_json([one]))["matchings"]["near"] == words
        assert f"need not be the {words}. The nearest person can be chosen" in explorer_lead([one])
    # Without columns nobody is near, and nobody can be chosen.
    assert "near" not in json.loads(explorer_json([plain]))["matchings"]
    assert explorer_lead([plain]) == (
        "Counterparts are matched by their scores, which need not be equal."
    )


@pytest.mark.parametrize(
    ("favourable", "words"),
    [
        ("high", "one selected, the other not selected"),
        ("low", "one not flagged, the other flagged"),
    ],
)
def test_the_filter_of_flips_names_both_outcomes(tmp_path, favourable, words):
    found = audit(
        [0.1, 0.9] * 40, sensitive_features=["a", "b"] * 40, n_resamples=100, favourable=favourable
    )
    assert f"({words})" in write_report(found, tmp_path / "r.html").read_text("utf-8")


def contents(found, tmp_path):
    """What the page tells of its own content."""
    text = write_report(found, tmp_path / "r.html").read_text("utf-8")
    (note,) = re.findall('class="contents-note" role="note">(.*?)</p>', text, re.S)
    return " ".join(unescape(note).split())


def test_rows_of_counted_people_are_no_people_and_all_of_them_no_sample(tmp_path):
    rows = {"sensitive_features": ["a", "b"] * 20, "n_resamples": 100}
    scores, weights = np.linspace(0, 1, 40), np.arange(40) + 5
    counted = {"sample_weight": weights, "weight_kind": "counts", **rows}
    said = contents(audit(scores, **counted), tmp_path)
    assert "This file holds 40 rows of counted people, in the explorer: their identifiers, " in said
    assert "identifiers, groups and scores. Whoever" in said
    assert "people," not in said.replace("counted people,", "")
    assert "sample" not in said
    drawn = contents(audit(scores, n_sample=10, **counted), tmp_path)
    assert re.search(r"lists a random sample: \d+ rows, and their counterparts", drawn)
    weighted = contents(audit(scores, sample_weight=weights, min_group_size=5, **rows), tmp_path)
    assert "This file holds the rows of 40 people" in weighted


def test_row_numbers_are_told_to_begin_at_zero_where_nobody_is_named(tmp_path, plain):
    assert "Identifiers are numbers of rows; the first row of the table is 0." in contents(
        plain, tmp_path
    )
    named = audit(
        [0.1, 0.9] * 40,
        sensitive_features=["a", "b"] * 40,
        ids=[f"p{k}" for k in range(80)],
        n_resamples=100,
    )
    assert "Identifiers" not in contents(named, tmp_path)


def test_a_figure_without_numbers_has_no_table(tmp_path):
    X = pd.DataFrame({"x": np.linspace(0, 1, 80)})
    found = audit(X["x"], sensitive_features=["a", "b"] * 40, X=X, n_resamples=100)
    assert found.subsets.subsets == ()
    text = write_report(found, tmp_path / "r.html").read_text("utf-8")
    assert "Subsets whose gap exceeds that of everybody" in text
    assert not re.search(r"<tbody>\s*</tbody>", text.split('<div class="explorer"')[0])


def test_decisions_are_those_before_rounding():
    found = audit(
        [0.49999999, 0.5] * 40, sensitive_features=["a", "b"] * 40, n_resamples=100, threshold=0.5
    )
    (model,) = json.loads(explorer_json([found]))["models"]
    assert set(model["scores"]) == {0.5}
    assert model["selected"] == [int(who) % 2 for who in found.individuals.ids]


def test_models_of_the_same_name_are_told_apart(plain, tmp_path):
    text = write_report([plain, plain], tmp_path / "r.html").read_text("utf-8")
    assert "model (1)" in text
    assert "model (2)" in text


def test_audits_that_cannot_share_a_report_are_refused(plain, hostile, tmp_path):
    with pytest.raises(InputError, match="different groups"):
        write_report([plain, hostile.audits[0]], tmp_path / "r.html")
    with pytest.raises(InputError, match="no audit"):
        write_report([], tmp_path / "r.html")
    with pytest.raises(InputError, match="accuracy"):
        write_report(plain, tmp_path / "r.html", curve=pd.DataFrame({"fairness_weight": [1.0]}))


def test_a_missing_extra_is_named(plain, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name == "jinja2":
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'fairmatch\[report\]'"):
        write_report(plain, tmp_path / "r.html")


def test_the_report_does_not_import_torch():
    code = (
        "import sys, fairmatch.report; sys.exit('torch' in sys.modules or 'altair' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_three_sentences_with_their_caveats(hostile):
    selection, matching, subsets = sentences(hostile.audits[0])
    assert "95% interval" in selection
    assert "are paired with people of group" in matching
    assert "subsets looked at" in subsets
    same = replace(
        hostile.audits[0],
        gaps=tuple(replace(gap, low=0.0) for gap in hostile.audits[0].gaps),
    )
    assert "cannot be ruled out" in sentences(same)[0]


def test_a_name_cannot_turn_the_sentence_around():
    assert shown_name("abc\u202edef") == "\u2068abcdef\u2069"
    assert shown_name("a\n\n b") == "\u2068a b\u2069"
    assert [shown_name(name) for name in ("White", "White ", " W  x")] == [
        "White",
        "White␣",
        "␣W x",
    ]
    assert len(shown_name("\u05d0" * 300)) == 82


def test_a_lone_surrogate_does_not_stop_the_report(plain, tmp_path):
    odd = replace(plain, model_name="half \ud83d of an emoji")
    assert write_report(odd, tmp_path / "r.html").stat().st_size > 0


def test_missing_values_and_numbers_are_kept():
    X, _, group, scores = make_table(100)
    X.loc[0, "age"] = None
    X["big"] = 1234567.25
    found = audit(scores, sensitive_features=group, X=X[["age", "big"]], n_resamples=100)
    age, big = json.loads(explorer_json([found]))["tables"][0]["columns"]
    assert age["values"][found.individuals.rows.index(0)] is None
    assert big["values"][1] == 1234567.25


def test_a_filing_has_the_numbers_of_the_page_and_nobodys_row(hostile, tmp_path):
    fields = {"auditor": "A <b>Doe</b>", "period": "2025"}
    text = write_filing(hostile, tmp_path / "f.html", fields=fields).read_text("utf-8")
    page = write_report(hostile, tmp_path / "r.html", individuals=False).read_text("utf-8")
    tables = [re.search(r'id="figure-1-numbers">(.*?)</table>', t, re.S)[1] for t in (text, page)]
    assert tables[0] == tables[1]
    assert "<script" not in text
    assert "person-7" not in text
    assert "A &lt;b&gt;Doe&lt;/b&gt;" in text
    provenance = hostile.audits[0].provenance
    assert provenance.scores_sha256 in text
    assert f"fairmatch {provenance.version}" in text


def test_what_cannot_be_filed_is_refused(plain, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="'judge', which is not one of auditor"):
        write_filing(plain, tmp_path / "f.html", fields={"judge": "x"})
    with pytest.raises(InputError, match=r"must end in \.html or \.pdf"):
        write_filing(plain, tmp_path / "f.docx")
    with pytest.raises(InputError, match="label_words must be two texts"):
        write_report(plain, tmp_path / "r.html", label_words="reoffended")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MissingExtraError, match="needs Chromium"):
        write_filing(plain, tmp_path / "f.pdf")


def periods_of(labels):
    """Return an audit of three years in which two groups are accepted at different rates."""
    generator = np.random.default_rng(0)
    group, year = np.tile(["a", "b"], 600), np.repeat(["2023", "2024", "2025"], 400)
    scores = np.where(generator.random(1200) < np.where(group == "a", 0.6, 0.4), 0.9, 0.1)
    y_true = generator.integers(0, 2, 1200) if labels else None
    return audit(
        scores, sensitive_features=group, y_true=y_true, by=year, n_resamples=100, n_sample=50
    )


@pytest.mark.parametrize("labels", [False, True])
def test_a_filing_has_every_period_and_says_which_changes_are_tested(labels, tmp_path):
    text = write_filing(periods_of(labels), tmp_path / "f.html").read_text("utf-8")
    table = re.search(r"<h3>Table A\d+ Selection rates in every period</h3>.*?</table>", text, re.S)
    assert all(year in table[0] for year in ("2023", "2024", "2025"))
    assert ("those of error rates among them" in table[0]) == labels


def test_a_filing_leaves_out_columns_that_a_sheet_has_no_room_for(tmp_path):
    generator = np.random.default_rng(1)
    group, rank = np.tile(["a", "b"], 400), generator.integers(0, 3, 800).astype(str)
    found = audit(generator.random(800), sensitive_features=group, given=rank, n_resamples=100)
    pages = [
        write(found, tmp_path / "page.html").read_text("utf-8")
        for write in (write_report, write_filing)
    ]
    assert ["conditional disparity" in page for page in pages] == [True, False]
    assert all("odds ratio (interval)" in page for page in pages)
