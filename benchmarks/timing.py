"""Ratios of two things measured in one run, and fresh processes to measure memory in."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of the table: what was measured, the ratio, and the most it may be."""

    what: str
    ratio: float
    goal: float | None = None

    def markdown(self):
        goal = "–" if self.goal is None else f"≤ {self.goal:g}"
        verdict = "" if self.goal is None else ("yes" if self.ratio <= self.goal else "**no**")
        return f"| {self.what} | {self.ratio:.2f} | {goal} | {verdict} |"


def in_subprocess(function, *arguments, threads=1):
    """Run a module's function in a fresh process, so that its memory and threads are its own."""
    code = (
        "import importlib, json, sys\n"
        "module, name, arguments = json.loads(sys.argv[1])\n"
        "print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))\n"
    )
    call = json.dumps([function.__module__, function.__name__, arguments])
    done = subprocess.run(
        [sys.executable, "-c", code, call],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS")},
    )
    return json.loads(done.stdout.splitlines()[-1])
