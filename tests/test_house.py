"""The arrows of the design: who may import whom, what loads when, what is documented."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from statistics import median

import pytest

import fairmatch
from fairmatch.exceptions import MissingExtraError

ROOT = Path(fairmatch.__file__).parent
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").strip("."): path
    for path in ROOT.rglob("*.py")
}


def imports(path: Path, text: str | None = None) -> set[str]:
    """Modules that a file imports, anywhere in it; those of fairmatch start with a dot.

    With a text, those that the file would import if it held this.
    """
    found: set[str] = set()
    package = (ROOT.name, *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(text or path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (start, node.module) if part)
            # `from fairmatch import measures` names a module, `… import fair_matching` does not.
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("fairmatch") if name.startswith("fairmatch.") else name
            for name in found}  # fmt: skip


def public_names(path: Path, text: str | None = None) -> set[str]:
    """Modules whose names a file takes from the package itself, which resolves them when used."""
    named = {name.removeprefix(".") for name in imports(path, text)}
    for node in ast.walk(ast.parse(text or path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            named |= {node.attr} if node.value.id == "fairmatch" else set()
    return {fairmatch._HOMES[name] for name in named if name in fairmatch._HOMES}


def modules_used(path: Path, text: str | None = None) -> set[str]:
    """Modules of fairmatch that a file uses, by whatever way."""
    named = {name.removeprefix(".") for name in imports(path, text) if name.startswith(".")}
    return (named | public_names(path, text)) & FILES.keys()


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


# Data flow from the first room to the last, and a room may use those before it.
ROOMS = (
    *("storage", "tables", "datasets", "matching", "measures"),
    *("learning", "auditing", "report", "experiments", "cli"),
)
ARROWS = {name: set(ROOMS[:place]) for place, name in enumerate(ROOMS)}
# What every room may use: the public names, and the errors.
COMMON = {"", "exceptions"}


def room(module: str) -> str:
    """The folder that a module lies in, or its own name at the top."""
    return module.split(".")[0]


def arrows(path: Path, text: str | None = None) -> set[str]:
    """Rooms that a file imports from, other than its own."""
    own = path.relative_to(ROOT).parts[0]
    return {room(module) for module in modules_used(path, text)} - COMMON - {own}


def forbidden(path: Path, text: str | None = None) -> set[str]:
    """Rooms that a file uses and may not."""
    return arrows(path, text) - ARROWS[path.relative_to(ROOT).parts[0]]


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Modules that reach each other, by Tarjan's strongly connected components."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            members = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(members) > 1:
                found.append(sorted(members))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def test_the_test_sees_imports():
    assert {".matching.coupling", ".tables.arrays", "numpy"} <= imports(FILES["matching.matchers"])
    assert "exceptions" in reach("matching.matchers")
    assert arrows(FILES["matching.matchers"]) == {"tables"}


def test_the_house_has_ten_rooms():
    assert {room(name) for name in FILES} - {"", "__main__", "exceptions"} == set(ROOMS)


@pytest.mark.parametrize("name", [name for name in FILES if room(name) in ARROWS])
def test_imports_follow_the_arrows(name):
    assert forbidden(FILES[name]) == set()


@pytest.mark.parametrize(
    "line",
    [
        "from fairmatch.report.page import write_report",
        "from fairmatch.report import write_report",
        "from fairmatch import report",
        "import fairmatch.report",
        "import fairmatch.report.page as page",
        "from ..report.page import write_report",
        "from .. import report",
        "def later():\n    from fairmatch.report import write_report",
        "if TYPE_CHECKING:\n    from fairmatch.report.page import Page",
        "from fairmatch import audit",
        "import fairmatch\nfound = fairmatch.audit(scores)",
    ],
)
def test_an_arrow_that_is_added_by_hand_is_found(line):
    path = FILES["measures.gaps"]
    text = path.read_text(encoding="utf-8")
    assert forbidden(path, text) == set()
    expected = {"auditing"} if "audit" in line else {"report"}
    assert forbidden(path, f"{text}\n{line}\n") == expected


def test_a_cycle_that_is_added_by_hand_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set()}
    assert cycles(graph) == [["a", "b", "c"]]
    assert cycles({**graph, "c": set()}) == []


def test_there_is_no_cycle():
    """Also none that an import inside a function hides.

    Packages only collect names for others, which Python resolves one module at a time.
    """
    modules = [name for name in FILES if FILES[name].name != "__init__.py"]
    graph = {name: modules_used(FILES[name]) & set(modules) - {name} for name in modules}
    assert cycles(graph) == []


# Where a module is found by a name that is not written in the source: public names, and a
# researcher's own classes.
DYNAMIC = {"", "experiments.custom.method", "experiments.custom.study"}


def test_modules_are_named_where_they_are_used():
    """A name that is put together when the program runs could hide any arrow."""
    found = {name for name in FILES if "importlib.import_module" in imports(FILES[name])}
    assert found <= DYNAMIC


LONGEST, MEDIAN = 400, 180


def test_modules_are_short():
    lengths = {
        name: len(path.read_text(encoding="utf-8").splitlines())
        for name, path in FILES.items()
        if path.name != "__init__.py"
    }
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}
    assert median(lengths.values()) <= MEDIAN


@pytest.mark.parametrize("name", FILES)
def test_only_the_solver_imports_pot(name):
    assert name == "matching.simplex" or not uses(FILES[name], "ot")


@pytest.mark.parametrize("name", FILES)
def test_there_is_no_drawer_for_odds_and_ends(name):
    assert name.split(".")[-1] not in ("utils", "util", "helpers", "common", "misc")


@pytest.mark.parametrize(
    "start",
    [
        *("measures", "matching", "auditing", "report", "datasets"),
        *("experiments.study", "experiments.reading", "experiments.page"),
    ],
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
PUBLIC = [
    *EXPORTED,
    *functions_of("measures"),
    *functions("matching.matchers"),
    *functions("matching.minibatches"),
]


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


@pytest.mark.parametrize("module", ["fairmatch.learning.trees"])
def test_trees_are_trained_and_saved_without_torch(module):
    pytest.importorskip("lightgbm")
    assert not fresh_import(module)[1] & {"torch", "safetensors"}


RUN = """
import sys
from fairmatch.cli.main import main
code = main()
print(*sys.modules)
sys.exit(code)
"""


def fresh_run(*arguments: str) -> set[str]:
    """Run a command in an interpreter of its own; return the modules that it loaded."""
    command = [sys.executable, "-c", RUN, *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
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


RESULTS = Path(__file__).parents[1] / "results"


@pytest.mark.skipif(not RESULTS.exists(), reason="the results are in the repository alone")
@pytest.mark.parametrize("action", [["status"], ["tables", "--check"], ["figures", "--check"]])
def test_records_are_read_and_drawn_without_a_learner(action):
    pytest.importorskip("altair")
    loaded = fresh_run("paper", *action, "--out", str(RESULTS))
    assert not loaded & {"torch", "safetensors", "lightgbm", "fairlearn"}
    assert "fairmatch.learning.path" not in loaded
