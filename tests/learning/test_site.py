"""The link that a notebook shows beside an estimator."""

import pytest
from synthetic import made

from fairmatch.learning.estimator import page_of

pytest.importorskip("lightgbm")

from fairmatch import FTMBoostingClassifier

PAGE = "reference/generated/fairmatch.FTMBoostingClassifier.html"


def test_an_address_is_linked_with_the_parameters(monkeypatch):
    monkeypatch.setenv("FAIRMATCH_DOCS", "https://example.org/docs/")
    shown = made(FTMBoostingClassifier, max_gap=0.05)._repr_html_()
    assert f'href="https://example.org/docs/{PAGE}"' in shown
    assert "max_gap" in shown


def test_a_folder_is_linked_if_it_holds_the_page(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRMATCH_DOCS", str(tmp_path))
    assert page_of(FTMBoostingClassifier) == ""
    (tmp_path / PAGE).parent.mkdir(parents=True)
    (tmp_path / PAGE).touch()
    assert page_of(FTMBoostingClassifier) == (tmp_path / PAGE).as_uri()


def test_a_class_of_somebody_else_has_no_page(monkeypatch):
    monkeypatch.setenv("FAIRMATCH_DOCS", "https://example.org/docs")
    own = type("Own", (FTMBoostingClassifier,), {"__module__": "elsewhere"})
    assert page_of(own) == ""
