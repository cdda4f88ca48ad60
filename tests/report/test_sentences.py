"""Every sentence of the templates stands on some page, and none that a reader found false."""

import re
from pathlib import Path

import pytest
from told import made, page_text

import fairmatch.report

ASSETS = Path(fairmatch.report.__file__).parent / "assets"
# Sentences of situations that `told.made` has not; the tests of figures have them.
ELSEWHERE = (
    "The row of a category of 1 person is",
    "Columns that add less are only in the",
    "The models were audited on different people",
    "The explorer needs JavaScript",
    "largest gap of two groups",
    "without the given factors, and",
    ", whose interval contains 0.",
    "few people of unknown category, scored and",
    "The scores take few values, and each is",
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("told")
    return {name: page_text(found, name, folder) for name, found in made(folder).items()}


def sentences_of(template):
    """Pieces of a template of five words or more, without what is filled in."""
    text = re.sub(r"{#.*?#}|{% (set|macro)[^\n]*|columns:[^\n]*", "", template.read_text("utf-8"))
    pieces = re.split(r"[\"\n|]|<.*?>|{{|}}|{%.*?%}|%[sdg.0-9]+f?g?|%%", text)
    plain = (" ".join(piece.split()) for piece in pieces)
    return [
        p for p in plain if len(p.split()) >= 5 and not re.search(r"[=(]\w*$|\bif | in flow", p)
    ]


@pytest.mark.parametrize(
    "name", ["figures.txt.j2", "sections.html.j2", "template.html.j2", "parts.html.j2"]
)
def test_every_sentence_stands_on_a_page(pages, name):
    everything = " ".join(pages.values())
    found = sentences_of(ASSETS / name)
    assert len(found) >= 4
    missing = [s for s in found if s not in everything and not s.startswith(ELSEWHERE)]
    assert missing == []


def test_what_a_search_found_is_said_first(pages):
    told = pages["alternatives"]
    places = [
        told.index(words)
        for words in (
            "What was found",
            "alternative was found: of 1 model tried",
            "Described below, besides 'one' (accuracy",
            "Of 160 people",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "words",
    [
        "treated alike",  # of scores .3 and .1, which are at the same rank
        "treats alike",
        "scores alike",
        "The nearest people are",  # of the partners in a matching
        "is not missing",
        "range because of tied scores",
        "_",  # column names are written as people write them
    ],
)
def test_what_a_hostile_reader_found_is_not_said(pages, words):
    for name in ("two", "three", "deciles", "low", "planted"):
        told, _, _ = pages[name].partition("What is not said, and why")
        assert words not in told


def test_the_number_of_a_matching_stands_in_tables_alone(pages):
    for told in pages.values():
        assert "between the nearest possible matching (0) and a random one (1)" not in told
