"""Ratios of two things measured in one run, and fresh processes to measure memory in."""

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from math import isnan
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """A line of the table: what was measured, the ratio (or NaN), and the most it may be."""

    what: str
    ratio: float
    goal: float | None = None
    digits: int = 2

    def markdown(self):
        goal = "–" if self.goal is None else f"≤ {self.goal:g}"
        verdict = "" if self.goal is None else ("yes" if self.ratio <= self.goal else "**no**")
        ratio = "not reached" if isnan(self.ratio) else f"{self.ratio:.{self.digits}f}"
        return f"| {self.what} | {ratio} | {goal} | {verdict} |"


class Spent:
    """CPU seconds and peak GB of this process since here, with those of its workers."""

    def __init__(self):
        self.start = time.process_time()

    def so_far(self, n_workers=0):
        """Workers count at the end of their life, each as much memory as the largest of them."""
        if n_workers > 1:
            from joblib.externals.loky import get_reusable_executor

            get_reusable_executor().shutdown(wait=True)
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        theirs = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = time.process_time() - self.start + theirs.ru_utime + theirs.ru_stime
        return {"cpu": cpu, "peak": (own + (n_workers > 1) * n_workers * theirs.ru_maxrss) / 2**20}


# BENCHMARKS_RECORDS names another folder for the records of a study.
RECORDS = Path(os.environ.get("BENCHMARKS_RECORDS", Path(__file__).parent / "records"))


def recorded(topic):
    """Return the runs of a study that are recorded, one JSON line each."""
    path = RECORDS / f"{topic}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def appended(topic, run):
    """Record a run of a study, so that an interrupted one goes on from there."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    with (RECORDS / f"{topic}.jsonl").open("a") as file:
        file.write(json.dumps(run) + "\n")
    return run


def in_subprocess(function, *arguments, threads=1):
    """Run a module's function in a fresh process, so that its memory and threads are its own.

    What it returns is kept in the folder that BENCHMARKS_KEEP names, if any, so that a topic of
    hours that was interrupted goes on from there.
    """
    code = (
        "import importlib, json, sys\n"
        "module, name, arguments = json.loads(sys.argv[1])\n"
        "print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))\n"
    )
    call = json.dumps([function.__module__, function.__name__, arguments])
    kept = None
    if "BENCHMARKS_KEEP" in os.environ:
        digest = hashlib.sha256(f"{call} {threads}".encode()).hexdigest()[:12]
        kept = Path(os.environ["BENCHMARKS_KEEP"]) / f"{function.__name__}-{digest}.json"
        if kept.exists():
            return json.loads(kept.read_text())["found"]
    done = subprocess.run(
        [sys.executable, "-c", code, call],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS")},
    )
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except json.JSONDecodeError as error:
        raise ValueError(f"{call} printed {done.stdout[-500:]!r} and no result.") from error
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"call": call, "threads": threads, "found": found}))
    return found
