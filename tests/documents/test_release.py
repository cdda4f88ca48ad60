"""What a release states about itself agrees with what it is."""

import re
import tomllib

import pytest
from pages import ROOT

import fairmatch

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = (line.split("==") for line in lines if "==" in line)
    return {normal(package): version for package, version in found}


def normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def requirements() -> dict[str, str]:
    """The lower bound of every dependency of a user: the core's and the extras'."""
    tools = {"docs", "dev", "boosters"}
    listed = list(PROJECT["dependencies"])
    for extra, packages in PROJECT["optional-dependencies"].items():
        listed += [] if extra in tools else packages
    found = (re.match(r"([\w.-]+)>=([\d.]+)", entry) for entry in listed)
    return {normal(match[1]): match[2] for match in found if match}


def test_the_smallest_versions_are_the_lower_bounds():
    smallest = pins("constraints-minimum.txt")
    assert smallest.keys() == requirements().keys()
    for package, bound in requirements().items():
        assert f"{smallest[package]}.".startswith(f"{bound}."), package


def test_every_dependency_is_pinned():
    assert requirements().keys() <= pins("constraints.txt").keys()


def test_the_changelog_has_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[?([\w.]+)", changelog, flags=re.M)
    assert newest is not None
    assert newest[1] in ("Unreleased", fairmatch.__version__)


def test_the_citation_has_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fairmatch.__version__}\n" in citation


def test_the_conda_recipe_is_that_of_the_core():
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    text = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(jinja2.Template(text).render())
    assert recipe["package"]["version"] == fairmatch.__version__
    python, *run = (entry.replace(" ", "") for entry in recipe["requirements"]["run"])
    assert python == f"python{PROJECT['requires-python']}"
    assert run == [entry.lower() for entry in PROJECT["dependencies"]]


@pytest.mark.parametrize(
    "name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "LICENSE", "CITATION.cff", "constraints.txt"]
)
def test_what_belongs_to_a_release_is_there(name):
    assert (ROOT / name).stat().st_size > 100
