"""The arrows of the design: who may import whom, what loads when, what is documented."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import fairmatch
from fairmatch.exceptions import MissingExtraError

ROOT = Path(fairmatch.__file__).parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


def imports(path: Path) -> set[str]:
    """Modules that a file imports, anywhere in it; those of fairmatch start with a dot."""
    found: set[str] = set()
    package = (ROOT.name, *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (start, node.module) if part)
            # `from fairmatch import measures` names a module, `… import fair_matching` does not.
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("fairmatch") if name.startswith("fairmatch.") else name
            for name in found}  # fmt: skip


def uses(path: Path, *modules: str) -> set[str]:
    return {name for name in imports(path) for m in modules if f"{name}.".startswith(f"{m}.")}


def reach(*starts: str) -> set[str]:
    """Modules of fairmatch that some modules import, directly or through others."""
    seen, todo = set(starts), list(starts)
    while todo:
        for name in imports(FILES[todo.pop()]):
            known = name.removeprefix(".")
            if name.startswith(".") and known in FILES and known not in seen:
                seen.add(known)
                todo.append(known)
    return seen


def inside(package: str) -> list[str]:
    return [name for name in FILES if name == package or name.startswith(f"{package}.")]


ROOMS = [
    "storage",
    "tables",
    "datasets",
    "matching",
    "measures",
    "learning",
    "auditing",
    "report",
    "experiments",
    "cli",
]
# What every room may use: the errors, and the version.
COMMON = {"", "exceptions"}


def room(module: str) -> str:
    """The folder that a module lies in, or its own name at the top."""
    return module.split(".")[0]


def arrows(name: str) -> set[str]:
    """Rooms that a module imports from, other than its own."""
    found = {
        room(used.removeprefix("."))
        for used in imports(FILES[name])
        if used.startswith(".") and used.removeprefix(".") in FILES
    }
    return found - COMMON - {room(name)}


def test_the_test_sees_imports():
    assert {".matching.coupling", ".tables.arrays", "numpy"} <= imports(FILES["matching.matchers"])
    assert "exceptions" in reach("matching.matchers")
    assert arrows("matching.matchers") == {"tables"}


def test_the_house_has_ten_rooms():
    assert {room(name) for name in FILES} - {"", "__init__", "__main__", "exceptions"} == set(ROOMS)


@pytest.mark.parametrize("name", [name for name in FILES if room(name) in ROOMS])
def test_imports_point_back(name):
    """Data flow from the first room to the last; a module may use only the rooms before its own."""
    later = ROOMS[ROOMS.index(room(name)) + 1 :]
    assert not arrows(name) & set(later)


def test_there_is_no_cycle():
    for name in FILES:
        used = {n.removeprefix(".") for n in imports(FILES[name]) if n.startswith(".")}
        own = {n for n in used if n in FILES and n != name and FILES[n].name != "__init__.py"}
        assert all(name not in reach(other) for other in own), f"fairmatch.{name} is in a cycle"


@pytest.mark.parametrize("name", [name for name in FILES if room(name) != "__main__"])
def test_nobody_imports_the_command_line(name):
    assert room(name) == "cli" or not uses(FILES[name], ".cli")


@pytest.mark.parametrize("name", FILES)
def test_only_the_solver_imports_pot(name):
    assert name in ("matching.solver", "matching.column_generation") or not uses(FILES[name], "ot")


@pytest.mark.parametrize("name", FILES)
def test_there_is_no_drawer_for_odds_and_ends(name):
    assert name.split(".")[-1] not in ("utils", "util", "helpers", "common", "misc")


@pytest.mark.parametrize(
    "start", ["measures", "matching", "auditing", "report", "datasets", "experiments.reading"]
)
def test_what_needs_no_training_never_loads_torch(start):
    for name in reach(*inside(start)):
        assert not uses(FILES[name], "torch"), f"fairmatch.{name} imports torch"


def functions(module: str) -> list[str]:
    """Public functions that a module defines."""
    tree = ast.parse(FILES[module].read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [f"fairmatch.{module}.{name}" for name in names if not name.startswith("_")]


def functions_of(package: str) -> list[str]:
    """Public functions that a package exports, by the module that defines them."""
    exported = import_module(f"fairmatch.{package}").__all__
    return [f for name in inside(package) for f in functions(name) if f.split(".")[-1] in exported]


EXPORTED = [f"fairmatch.{name}" for name in fairmatch.__all__]
PUBLIC = [*EXPORTED, *functions_of("measures"), *functions("matching.matchers")]


def resolve(path: str) -> object:
    module, name = path.rsplit(".", 1)
    try:
        return getattr(import_module(module), name)
    except MissingExtraError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("path", PUBLIC)
def test_no_module_bears_a_public_name(path):
    # `fairmatch.audit` is a function; a folder of that name would hide it.
    assert path.split(".")[-1] not in {room(name) for name in FILES}


@pytest.mark.parametrize("path", [path for path in PUBLIC if path != "fairmatch.__version__"])
def test_public_names_are_documented_with_an_example(path):
    documentation = inspect.getdoc(resolve(path)) or ""
    assert "Examples\n--------" in documentation
    assert ">>>" in documentation


@pytest.mark.parametrize("path", EXPORTED)
def test_every_exported_name_resolves_to_itself(path):
    value, name = resolve(path), path.split(".")[-1]
    assert name in dir(fairmatch)
    assert name == "__version__" or value.__name__ == name


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'unfair_matching'"):
        _ = fairmatch.unfair_matching
    with pytest.raises(ImportError):
        from fairmatch import unfair_matching  # noqa: F401


LOADED = """
import sys, time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
print(*sys.modules)
"""
HEAVY = {
    "torch",
    "ot",
    "matplotlib",
    "altair",
    "sklearn",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
}


def fresh_import(module: str) -> tuple[float, set[str]]:
    run = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, names = run.stdout.splitlines()
    return float(seconds), set(names.split())


def test_importing_the_package_is_quick_and_loads_nothing_heavy():
    seconds, loaded = min(fresh_import("fairmatch") for _ in range(3))
    assert not loaded & (HEAVY | {"numpy", "scipy"})
    assert seconds < 0.5


def test_measuring_loads_nothing_heavy():
    # scipy.stats alone takes longer to import than everything else that the measures need.
    assert not fresh_import("fairmatch.measures")[1] & (HEAVY | {"scipy.stats"})


@pytest.mark.parametrize(
    "module",
    ["fairmatch.learning.trees.classifiers", "fairmatch.learning.trees.text", "fairmatch.cli.jobs"],
)
def test_trees_are_trained_saved_and_used_without_torch(module):
    pytest.importorskip("lightgbm")
    assert not fresh_import(module)[1] & {"torch", "safetensors"}
