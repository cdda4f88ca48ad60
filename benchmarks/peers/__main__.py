"""Run the peers and write results/peers.md: ``make peers``.

Results are written after every method, and a run goes on from those that are there; ``--again``
measures them anew. Methods that ``python -m paper groups`` has run on the same rows are taken
from its records. Any other method has a number of CPU seconds for each case.
"""

import argparse
import json
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from paper.groups import CASES, Case, case_spec, judge, look
from paper.methods import Model
from paper.readings import table
from paper.records import RecordStore

from benchmarks.peers.methods import ODDS, PEERS, Decide, Peer, Trial
from fairmatch.people.files import write_whole

LEVELS = (0.02, 0.05, 0.08)
SEED = 0
_NOT_YET = {"reason": "there was no time yet; `make peers` goes on from here"}
SECONDS = 240
PAGE, RECORDS, GROUPS = Path("results/peers.md"), Path("results/peers.json"), "results/groups"

_SEX = replace(
    CASES["adult-sex-odds"],
    name="adult-sex",
    title="Adult by sex, demographic parity",
    criterion="demographic_parity",
)
_ALL = {
    _SEX.name: _SEX,
    **{name: CASES[name] for name in ("adult-race", "adult-sex-odds")},
    "adult-race-odds": replace(
        CASES["adult-race"],
        name="adult-race-odds",
        title="Adult by race, equalized odds",
        criterion=ODDS,
    ),
    **{name: CASES[name] for name in ("acsincome-sex", "acsincome-race")},
}


class OutOfTimeError(Exception):
    """A method has used up its CPU time."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in a block that takes more CPU seconds than this."""

    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def run(peer: Peer, trial: Trial, allowed: float) -> dict:
    """Measure the candidates of a peer, as far as its time goes, or say why there are none.

    Half-spaces and consistency take longest, and are shown at the middle level alone.
    """
    reason = peer.missing or peer.unsuited(trial)
    if reason:
        return {"reason": reason}
    rows, decisions, stopped, spent = [], [], False, 0.0
    candidates = peer.candidates(trial)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while spent < allowed:
                start = time.process_time()
                with limited(allowed - spent):  # what is measured is nobody's time
                    found = next(candidates, None)
                spent += time.process_time() - start
                if found is None:
                    break
                rows.append({"setting": float(found[0]), **judge(trial.problem, _model(found[1]))})
                decisions.append(found[1])
            else:
                stopped = True
    except OutOfTimeError:
        stopped, spent = True, allowed
    except Exception as error:
        return {"reason": f"{type(error).__name__}: {str(error)[:160]}"}
    if stopped and not rows:
        return {"reason": f"no setting was done within {allowed:g} CPU seconds", "stopped": True}
    if not rows:
        return {"reason": "it has no setting for a gap"}
    middle = pick(rows, LEVELS[1])
    if middle is not None:
        middle |= look(trial.problem, _model(decisions[rows.index(middle)]))
    return {"candidates": rows, "seconds": round(spent, 1), "stopped": stopped}


def recorded_run(peer: Peer, case: str) -> dict | None:
    """Return what ``python -m paper groups`` has recorded of the same method, rows and measures."""
    if peer.method is None:
        return None
    record = RecordStore(GROUPS).find(case_spec(case, peer.method, SEED))
    if record is None:
        return None
    curve = {"setting": record.curve["weight"], **record.curve}
    del curve["weight"]
    rows = [dict(zip(curve, values, strict=True)) for values in zip(*curve.values(), strict=True)]
    return {"candidates": rows, "seconds": record.seconds, "stopped": False}


def pick(rows: list[dict], level: float) -> dict | None:
    """Return the candidate most accurate on the tuning rows within a level there."""
    kept = [
        row for row in rows if row["tune_gap"] <= level and 0.01 <= row["tune_accepted"] <= 0.99
    ]
    return max(kept, key=lambda row: row["tune_accuracy"], default=None)


def page(found: dict) -> str:
    """Return the page of all that is recorded."""
    packages = sorted({peer.package for peer in PEERS.values()} - {"fairmatch"})
    known = [name for name in packages if not Peer("", name, lambda trial: iter(())).missing]
    lines = [
        "# Peers, side by side",
        "",
        "Written by `make peers`, which builds an environment of its own. The libraries are "
        f"{', '.join(f'{name} {version(name)}' for name in known)}.",
        "",
        f"One split (seed {SEED}) of each table: rows to fit on (64%), rows to tune on (16%) and "
        "test rows (20%). All methods start from the same plain trees (LightGBM, 200 rounds), "
        "unless the table names another learner. For each method we take the most accurate "
        "setting whose gap is within the level, both on the tuning rows, and measure it on the "
        "test rows. The gap is the largest over pairs of groups; for equalized odds it is the "
        "larger one of ΔTPR and ΔFPR. For random decisions, the numbers are expectations or those "
        "of one draw. Seconds are the CPU time of all settings of a method, without the plain "
        "trees; they include the trees in rows that come from `python -m paper groups`. A method "
        f"is stopped after {SECONDS} seconds, and only its finished settings count. On one split, "
        "differences below about 0.003 are within noise. Adult by sex with demographic parity was "
        "measured with version 0.3; in the other tables, fairmatch's rows come from an earlier "
        "version.",
    ]
    for name, methods in found.items():
        lines += ["", f"## {_ALL[name].title}", ""]
        rows = []
        for key, peer in PEERS.items():
            result = methods.get(key, _NOT_YET)
            if "reason" in result:
                rows.append([peer.title, f"not run: {result['reason']}", *[""] * 6])
                continue
            picked = [pick(result["candidates"], level) for level in LEVELS]
            cells = [
                "not reached" if one is None
                else f"{one['test_accuracy']:.4f} [{one['test_gap']:.3f}]"
                for one in picked
            ]  # fmt: skip
            middle, n_done = picked[1], len(result["candidates"])
            more = [
                "" if middle is None or middle.get(name) is None else f"{middle[name]:.3f}"
                for name in ("consistency", "half_space_gap")
            ]
            rows.append(
                [
                    peer.title,
                    *cells,
                    *more,
                    "random" if peer.random else "yes",
                    f"{result['seconds']:.0f}"
                    + (f", {n_done} setting{'s' * (n_done != 1)}" if result["stopped"] else ""),
                ]
            )
        head = [f"accuracy [gap] at {level:g}" for level in LEVELS]
        lines.append(
            table(
                ["method", *head, "consistency", "half-space gap", "deterministic", "seconds"], rows
            )
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(_ALL), choices=list(_ALL))
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--again", action="store_true", help="also what is recorded")
    asked = parser.parse_args()
    for name in asked.cases:
        known = {} if asked.again else _recorded().get(name, {})
        trial = None
        for key in asked.peers:
            if _done(known.get(key, {})):
                continue
            told = recorded_run(PEERS[key], name)
            if told is None:
                trial = trial or _trial(_ALL[name])
                told = run(PEERS[key], trial, SECONDS)
            found = _recorded()  # another run may have written meanwhile
            found.setdefault(name, {})[key] = told
            print(name, key, told.get("reason") or f"{told['seconds']} s", flush=True)
            found = {case: {p: found[case][p] for p in PEERS if p in found[case]}
                     for case in _ALL if case in found}  # fmt: skip
            write_whole(RECORDS, json.dumps(found, indent=0) + "\n")
    write_whole(PAGE, page(_recorded()))


def _trial(case: Case) -> Trial:
    trial = Trial(case.draw(SEED), SEED)
    trial.plain(trial.problem.tune)  # trained once, before anybody's time is taken
    return trial


def _model(decide: Decide) -> Model:
    return lambda rows, group: decide(replace(rows, group=group))


def _recorded() -> dict:
    return json.loads(RECORDS.read_text()) if RECORDS.exists() else {}


def _done(result: dict) -> bool:
    """Whether a method need not be run again: it was measured, or did not come to an end."""
    return "candidates" in result or "stopped" in result


if __name__ == "__main__":
    main()
