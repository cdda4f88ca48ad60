"""Patterns that make documents hard to read, kept out."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from pages import ROOT, documents

import fairmatch
from fairmatch.measures import MEASURES

GLOSSARY = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
PACKAGE = Path(fairmatch.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# Δ with whatever follows it: ΔDP, Δ‾DP, Δ‾DP_A.
SYMBOL = re.compile(r"Δ‾?[A-Z]+(?:_[A-Z])?")
LONGEST = 100


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def docstrings() -> dict[str, str]:
    """The first lines of the docstrings of everything that is public, by name."""
    found = {}
    for path in MODULES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(("fairmatch", *parts)).removesuffix(".__init__")
        if path.name == "__main__.py":
            continue
        try:
            module = import_module(name)
        except ImportError:  # an extra that is not installed
            continue
        for key, value in vars(module).items():
            if key.startswith("_") or getattr(value, "__module__", None) != name:
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{name}.{key}"] = inspect.getdoc(value) or ""
            if inspect.isclass(value):
                for method, function in vars(value).items():
                    if not method.startswith("_") and inspect.isfunction(function):
                        found[f"{name}.{key}.{method}"] = inspect.getdoc(function) or ""
    return found


def begins_badly(text: str) -> bool:
    """Whether a docstring begins with a word that does not name what comes out."""
    return re.match(r"(Gives?|Says?|Tells?)\b", text) is not None


def test_docstrings_begin_with_what_comes_out():
    found = docstrings()
    assert len(found) > 500, "docstrings are not found"
    assert {name for name, text in found.items() if begins_badly(text)} == set()


def test_the_test_of_docstrings_sees_them():
    assert begins_badly("Give the gap.")
    assert begins_badly("Says who is matched.")
    assert not begins_badly("Given a table, return its columns.")


def lines_that_are_too_long(text: str) -> list[int]:
    """Numbers of the lines over the limit; tables, addresses and shown output cannot be broken."""
    found, fence = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence = not fence
        breakable = not (fence or line.startswith(("|", "[")) or "http" in line or "](" in line)
        if breakable and len(line) > LONGEST:
            found.append(number)
    return found


def test_the_test_of_lines_sees_them():
    long = "word " * 30
    assert lines_that_are_too_long(f"short\n{long}\n|{long}\n```text\n{long}\n```\n") == [2]


@pytest.mark.parametrize("path", documents(), ids=relative)
def test_lines_of_pages_are_short(path):
    assert lines_that_are_too_long(path.read_text(encoding="utf-8")) == []


def unknown_symbols(text: str) -> set[str]:
    """Symbols of a text that the glossary does not have."""
    return set(SYMBOL.findall(text)) - set(SYMBOL.findall(GLOSSARY))


def test_the_test_of_symbols_sees_them():
    assert unknown_symbols("ΔDP, Δ‾DP_A and ΔXYZ") == {"ΔXYZ"}


@pytest.mark.parametrize("path", [*documents(), *MODULES], ids=relative)
def test_symbols_stand_in_the_glossary(path):
    assert unknown_symbols(path.read_text(encoding="utf-8")) == set()


# Names of methods, measures and laws that are written as capitals; those that every reader of a
# page about programs knows are not among them.
ABBREVIATION = re.compile(r"\b(?:[A-Z]{3,5}|sIPM|POT|OT|EO)\b")
KNOWN = {
    "AIF360", "API", "ASCII", "BLAS", "CC", "CI", "CLI", "CPU", "CSS", "CSV", "CUDA", "GB", "GPU",
    "HTML", "JSON", "MIT", "NaN", "NOT", "ONNX", "PDF", "PNG", "RAM", "SHA", "SQL", "SVG", "TMLR",
    "TOML", "UCI", "URL", "UTF", "XML", "YAML",
}  # fmt: skip


def test_abbreviations_stand_in_the_glossary():
    """In prose of the guidance: code and the evidence pages have names of their own."""
    missing: dict[str, set[str]] = {}
    for path in documents():
        if not {"start", "howto", "explain"} & set(path.parts):
            continue
        text = re.sub(r"<!--.*?-->|```.*?^```|`[^`]*`|\$[^$]*\$|\]\([^)]*\)", " ",
                      path.read_text(encoding="utf-8"), flags=re.S | re.M)  # fmt: skip
        text = SYMBOL.sub(" ", text)
        for word in set(ABBREVIATION.findall(text)) - KNOWN:
            if not re.search(rf"\b{word}\b", GLOSSARY):
                missing.setdefault(word, set()).add(path.name)
    assert missing == {}


def test_every_measure_stands_in_the_glossary_with_its_name():
    for measure in MEASURES.values():
        assert f"| {measure.symbol} |" in GLOSSARY
        assert f"`{measure.name}`" in GLOSSARY


def test_every_public_name_is_in_the_reference():
    pages = (ROOT / "docs" / "reference").glob("*.rst")
    listed = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    names = {name for name in fairmatch.__all__ if name != "__version__"}
    names |= set(import_module("fairmatch.measures").__all__)
    names |= {name for name in import_module("fairmatch.datasets").__all__ if not name.isupper()}
    errors = vars(import_module("fairmatch.exceptions")).values()
    names |= {error.__name__ for error in errors if inspect.isclass(error)}
    missing = {name for name in names if not re.search(rf"\b{name}\b", listed)}
    assert missing == set()


def test_the_gallery_is_listed_in_reading_order():
    configuration = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    listed = set(re.findall(r'^    "(\w+\.py)",$', configuration, flags=re.M))
    ignored = {"demo.py", "pictures.py", "screenshots.py", "shifting.py"}
    there = {path.name for path in (ROOT / "examples").glob("*.py")} - ignored
    assert there <= listed
