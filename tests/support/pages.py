"""The code on the pages: what stands in their blocks, run as a reader would run it.

Python blocks of a page share one namespace, and all blocks one folder. A block of ``text`` right
after a block is what it prints. Three comments steer it, each in the line before a block or by
itself::

    <!-- not run: REASON -->      the next block is not run
    <!-- exit: 1 -->              the next command ends with this code
    <!-- hidden: … -->            Python that is run and not shown, such as a table to start with

``python tests/support/pages.py PAGE …`` writes what is printed into the pages.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    # As in the tests, which compare what the pages print.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OPENBLAS_CORETYPE="Haswell")

from fairmatch.exceptions import FairmatchWarning

ROOT = Path(__file__).parents[2]
RUN = ("python", "bash")
# What is not a program: tests of their own read it from the page.
DATA = ("toml", "yaml", "json")

_PIECE = re.compile(
    r"<!-- hidden:\n(?P<hidden>.*?)-->"
    r"|(?P<steer><!-- (?:not run|exit): .*? -->)"
    r"|^(?P<fence>```+)(?P<language>[^`\n]*)\n(?P<body>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A piece of code: what it says, what is shown of its output, and how it is to be run."""

    language: str
    body: str
    line: int
    shown: str | None = None
    span: tuple[int, int] = (0, 0)
    reason: str | None = None
    code: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.body.strip().splitlines()[0]}"


def documents() -> list[Path]:
    """Return every page that a reader sees and that is written by hand."""
    skipped = {"_build", "gallery", "generated", "backreferences"}
    pages = [p for p in sorted((ROOT / "docs").rglob("*.md")) if not skipped & set(p.parts)]
    return [*sorted(ROOT.glob("*.md")), *pages]


def blocks(text: str) -> list[Block]:
    """Return the code of a page, in order."""
    found: list[Block] = []
    steer, last = "", 0
    for piece in _PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["hidden"] is not None:
            found.append(Block("python", piece["hidden"], line))
        elif piece["steer"] is not None:
            steer = piece["steer"]
            continue
        elif piece["language"] in RUN:
            reason = re.match(r"<!-- not run: (.*) -->", steer)
            code = re.match(r"<!-- exit: (\d+) -->", steer)
            found.append(
                Block(
                    piece["language"],
                    piece["body"],
                    line,
                    reason=reason and reason[1],
                    code=int(code[1]) if code else 0,
                )
            )
        elif piece["language"] == "text" and found and not text[last : piece.start()].strip():
            span = piece.start("body"), piece.end("body")
            found[-1] = Block(**{**vars(found[-1]), "shown": piece["body"], "span": span})
        steer, last = "", piece.end()
    return found


def strays(text: str) -> list[int]:
    """Return the lines of fences that are neither run, nor output, nor data, nor a directive."""
    shown = {block.span for block in blocks(text)}
    return [
        text.count("\n", 0, piece.start()) + 1
        for piece in _PIECE.finditer(text)
        if piece["fence"]
        and not piece["language"].startswith("{")
        and piece["language"] not in (*RUN, *DATA)
        and piece.span("body") not in shown
    ]


def data(text: str, language: str) -> list[str]:
    """Return what stands in the fences of a language of data."""
    return [piece["body"] for piece in _PIECE.finditer(text) if piece["language"] == language]


def run(page: list[Block], folder: Path) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in a folder; yield each with what it prints."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in page:
        if block.reason is not None:
            continue
        yield block, (_python(block, names) if block.language == "python" else _bash(block, folder))


def _python(block: Block, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FairmatchWarning)
        # Older pandas suits fairlearn, and MLflow warns of its own types.
        warnings.filterwarnings("ignore", module=r"(fairlearn|mlflow)\.")
        exec(compile(block.body, str(block), "exec"), names)
    return printed.getvalue()


def _bash(block: Block, folder: Path) -> str:
    bin_ = folder / ".bin"
    bin_.mkdir(exist_ok=True)
    command = bin_ / "fairmatch"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairmatch "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.body],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == block.code, f"{block} ended with {done.returncode}\n{done.stderr}"
    return done.stdout


def rewrite(path: Path) -> None:
    """Write what the blocks of a page print into the page."""
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = list(run(blocks(text), Path(folder)))
    for block, printed in reversed(found):
        if block.shown is not None:
            start, end = block.span
            text = text[:start] + printed.rstrip("\n") + "\n" + text[end:]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        rewrite(Path(given).resolve())
