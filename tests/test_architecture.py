"""The order of the packages, what loads when, and what is documented."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fairmatch
from fairmatch.exceptions import MissingExtraError

# The one list: a package may import from the packages before it.
PACKAGES = (
    *("people", "datasets", "matching", "measures"),
    *("learning", "auditing", "report", "cli"),
)

ROOT = Path(fairmatch.__file__).parent
MODULES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


def imports(module: str, text: str | None = None) -> set[str]:
    """Return the full names of modules that a module imports, anywhere in it.

    Public names count as the module that they come from.
    """
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(text or path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join(parts) if node.level else ""
            source = ".".join(part for part in (start, node.module) if part)
            found |= {source} | {f"{source}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {f"fairmatch.{node.attr}"} if node.value.id == "fairmatch" else set()
    homes = {f"fairmatch.{name}": f"fairmatch.{home}" for name, home in fairmatch._HOMES.items()}
    return {homes.get(name, name) for name in found}


def package_of(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def forbidden(module: str, text: str | None = None) -> set[str]:
    """Return the packages that a module imports from and may not, and the paper."""
    own = package_of(module)
    used = {package_of(name) for name in imports(module, text) if name.startswith("fairmatch.")}
    later = set(PACKAGES[PACKAGES.index(own) + 1 :])
    return (used & later) | ({"paper"} & {name.split(".")[0] for name in imports(module, text)})


def test_the_packages_are_those_of_the_list():
    assert {package_of(name) for name in MODULES} == {"", "__main__", "exceptions", *PACKAGES}


@pytest.mark.parametrize("module", [name for name in MODULES if package_of(name) in PACKAGES])
def test_imports_follow_the_order(module):
    assert forbidden(module) == set()


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("from fairmatch.report.page import write_report", "report"),
        ("from fairmatch import report", "report"),
        ("import fairmatch.report.page as page", "report"),
        ("from ..report import write_report", "report"),
        ("def later():\n    from fairmatch.report import write_report", "report"),
        ("from fairmatch import audit", "auditing"),
        ("import fairmatch\nfound = fairmatch.audit(scores)", "auditing"),
        ("from paper.records import Record", "paper"),
    ],
)
def test_a_wrong_import_is_found(line, package):
    module = "fairmatch.measures.registry"
    text = MODULES[module].read_text(encoding="utf-8")
    assert forbidden(module, f"{text}\n{line}\n") == {package}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other: what is left when leaves are taken away."""
    left = {name: used & graph.keys() - {name} for name, used in graph.items()}
    while leaves := {name for name, used in left.items() if not used & left.keys()}:
        left = {name: used for name, used in left.items() if name not in leaves}
    return sorted(left)


def test_no_module_imports_itself_through_others():
    """Also not through an import inside a function."""
    modules = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    assert cycle({name: imports(name) & modules for name in modules}) == []
    assert cycle({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()}) == ["a", "b", "c"]


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_named_where_they_are_used(module):
    """A module name that is put together at run time could hide any import."""
    assert module == "fairmatch" or "importlib.import_module" not in imports(module)
    assert module.split(".")[-1] not in ("utils", "util", "helpers", "common", "misc")


def exported(package: str) -> list[str]:
    return [f"{package}.{name}" for name in import_module(package).__all__]


PUBLIC = [
    name
    for package in ("fairmatch", "fairmatch.measures", "fairmatch.datasets", "fairmatch.report")
    for name in exported(package)
]


def resolve(path: str) -> object:
    module, name = path.rsplit(".", 1)
    try:
        return getattr(import_module(module), name)
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("path", PUBLIC)
def test_public_names_are_documented_with_an_example(path):
    value = resolve(path)
    if callable(value):
        assert ">>>" in (inspect.getdoc(value) or ""), f"{path} has no example"


@pytest.mark.parametrize("path", exported("fairmatch"))
def test_every_exported_name_resolves_to_itself(path):
    value, name = resolve(path), path.split(".")[-1]
    assert name in dir(fairmatch)
    assert name == "__version__" or value.__name__ == name
    assert name not in PACKAGES  # `fairmatch.audit` is a function; a package would hide it


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'unfair_matching'"):
        _ = fairmatch.unfair_matching


LOADED = """
import sys, time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
print(*sys.modules)
"""
HEAVY = {"torch", "ot", "matplotlib", "altair", "sklearn", "pandas", "polars", "pyarrow"}


def fresh_import(module: str) -> tuple[float, set[str]]:
    command = [sys.executable, "-c", LOADED.format(module=module)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, names = run.stdout.splitlines()
    return float(seconds), set(names.split())


def test_importing_the_package_is_quick_and_loads_nothing_heavy():
    seconds, loaded = min(fresh_import("fairmatch") for _ in range(3))
    assert not loaded & (HEAVY | {"numpy", "scipy"})
    assert seconds < 0.4


@pytest.mark.parametrize("package", ["measures", "matching", "auditing.audit", "datasets"])
def test_what_needs_no_training_loads_no_learner(package):
    loaded = fresh_import(f"fairmatch.{package}")[1]
    assert not loaded & {"torch", "safetensors", "lightgbm", "altair", "matplotlib"}


def test_trees_are_trained_without_torch():
    pytest.importorskip("lightgbm")
    assert not fresh_import("fairmatch.learning.trees")[1] & {"torch", "safetensors"}


RUN = """
import sys
from fairmatch.cli.main import main
code = main()
print(*sys.modules)
sys.exit(code)
"""


def fresh_run(*arguments: str) -> set[str]:
    """Run a command in an interpreter of its own; return the modules that it loaded."""
    run = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.splitlines()[-1].split())


def test_a_command_trains_and_uses_trees_without_torch(tmp_path):
    pytest.importorskip("lightgbm")
    model, scores = str(tmp_path / "model"), str(tmp_path / "scores.csv")
    table = tmp_path / "people.csv"
    rows = [f"{age},{'fm'[age % 2]},{int(age > 40)}" for age in range(20, 60)] * 5
    table.write_text("\n".join(["age,sex,hired", *rows]))
    given = ["--target", "hired", "--sensitive", "sex", "--rounds", "2", "--no-picture"]
    loaded = fresh_run("train", str(table), *given, "--out", model)
    loaded |= fresh_run("predict", model, str(table), "--out", scores)
    assert not loaded & {"torch", "safetensors"}
