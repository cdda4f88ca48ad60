"""Run the peers and write results/peers.md: ``make peers``."""

import argparse
import json
import time
import warnings
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.methods import ODDS, PEERS, Peer
from fairmatch.experiments.groups.cases import CASES, Case, CaseSplit
from fairmatch.experiments.groups.trial import Trial
from fairmatch.experiments.page.markdown import table
from fairmatch.storage.atomic import write_whole

LEVELS = (0.02, 0.05, 0.08)
SEED = 0
PAGE, RECORDS = Path("results/peers.md"), Path("results/peers.json")

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
        title="Adult by race, equalised odds",
        criterion=ODDS,
    ),
    **{name: CASES[name] for name in ("acsincome-sex", "acsincome-race")},
}


def run(case: Case, peer: Peer, trial: Trial) -> dict:
    """Measure every candidate of a peer, or say why there are none."""
    reason = peer.missing or peer.unsuited(trial)
    if reason:
        return {"reason": reason}
    start, rows, seconds = time.process_time(), [], 0.0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for setting, decide in peer.candidates(trial):
                seconds += time.process_time() - start
                rows.append({"setting": float(setting), **trial.measure(decide)})
                start = time.process_time()
    except Exception as error:
        return {"reason": f"{type(error).__name__}: {str(error)[:160]}"}
    if not rows:
        return {"reason": "it has no setting for a gap"}
    return {"candidates": rows, "seconds": round(seconds, 1)}


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
        "test rows (20%). Every method starts from the same plain trees, LightGBM with 200 "
        "rounds, but for learners of their own, which are named. Of its settings, the one most "
        "accurate on the tuning rows whose gap there is within the level is taken, and measured on "
        "the test rows. The gap is the largest over pairs of groups; for equalised odds it is the "
        "larger one of ΔTPR and ΔFPR. Where decisions are random, numbers are expectations or "
        "those of one draw. Seconds are CPU time of all settings of a method, beside the plain "
        "trees. One split says nothing of differences below about .003.",
    ]
    for name, methods in found.items():
        lines += ["", f"## {_ALL[name].title}", ""]
        rows = []
        for key, result in methods.items():
            peer = PEERS[key]
            if "reason" in result:
                rows.append([peer.title, f"not run: {result['reason']}", *[""] * 6])
                continue
            picked = [pick(result["candidates"], level) for level in LEVELS]
            cells = [
                "not reached" if one is None
                else f"{one['test_accuracy']:.4f} [{one['test_gap']:.3f}]"
                for one in picked
            ]  # fmt: skip
            middle = picked[1]
            more = ["", ""] if middle is None else [
                f"{middle['consistency']:.3f}", f"{middle['half_space_gap']:.3f}"
            ]  # fmt: skip
            rows.append(
                [
                    peer.title,
                    *cells,
                    *more,
                    "random" if peer.random else "yes",
                    f"{result['seconds']:.0f}",
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
    arguments = parser.parse_args()
    found = json.loads(RECORDS.read_text()) if RECORDS.exists() else {}
    for name in arguments.cases:
        case = _ALL[name]
        trial = Trial(case, CaseSplit.draw(case, SEED), SEED)
        trial.plain(trial.split.tune)  # trained once, before anybody's time is taken
        for key in arguments.peers:
            found.setdefault(name, {})[key] = run(case, PEERS[key], trial)
            told = found[name][key]
            print(name, key, told.get("reason") or f"{told['seconds']} s", flush=True)
            found = {case: {p: found[case][p] for p in PEERS if p in found[case]}
                     for case in _ALL if case in found}  # fmt: skip
            write_whole(RECORDS, json.dumps(found, indent=0) + "\n")
            write_whole(PAGE, page(found))


if __name__ == "__main__":
    main()
