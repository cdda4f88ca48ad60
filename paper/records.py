"""Records of runs, one file each."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fairmatch.exceptions import InputError
from fairmatch.people.files import PARTIAL, write_whole
from paper.specs import RunSpec

STALE_SECONDS = 24 * 3600.0
"""Age at which a partial file or a claim counts as left behind. Every run takes less time."""


@dataclass(frozen=True, eq=False)
class Record:
    """The result of a finished run."""

    spec: RunSpec  #: The spec of the run.
    curve: dict[str, list[Any]]  #: Name of a quantity to its values, one for each fairness weight.
    seconds: float  #: CPU time of the run.
    versions: dict[str, str]  #: Versions of fairmatch and of the packages that it uses.
    #: Packed scores of the test rows, if other runs are compared with this one.
    reference_scores: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the content as plain values."""
        content = {
            "spec": vars(self.spec),
            "versions": self.versions,
            "seconds": self.seconds,
            "curve": self.curve,
        }
        if self.reference_scores is not None:
            content["reference_scores"] = self.reference_scores
        return content


class RecordStore:
    """A folder of records.

    A record's file is named by the spec's digest and put in place by one rename. So a run that is
    killed leaves nothing that looks like a record, and a run has at most one record. A file can
    still be damaged by other means, such as an interrupted copy; `missing` raises and names it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, spec: RunSpec) -> Path:
        """Return the file of a run's record, whether it exists or not."""
        return self.folder / spec.dataset / f"{spec.name}.json"

    def __contains__(self, spec: RunSpec) -> bool:
        return self.path(spec).exists()

    def __iter__(self) -> Iterator[Record]:
        for file in sorted(self.folder.glob("*/*.json")):
            yield self._read(file)

    def find(self, spec: RunSpec) -> Record | None:
        """Return the record of a run, or None."""
        return self._read(self.path(spec)) if spec in self else None

    def missing(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """Return the runs without a record, or raise if one of the files is not a record."""
        missing, broken = [], []
        for spec in specs:
            try:
                if self.find(spec) is None:
                    missing.append(spec)
            except InputError as error:
                broken.append(str(error))
        if broken:
            raise InputError("\n".join(broken))
        return missing

    def claim(self, spec: RunSpec) -> bool:
        """Claim a run, and return False if another process has claimed it.

        A claim is only a hint: a process that is killed leaves it behind.
        """
        file = self._claim(spec)
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def release(self, spec: RunSpec) -> None:
        """Remove the claim on a run."""
        self._claim(spec).unlink(missing_ok=True)

    def _claim(self, spec: RunSpec) -> Path:
        return self.path(spec).with_name(f".{spec.name}.begun")

    def clean(self) -> None:
        """Remove old files that killed processes have left behind."""
        for file in (*self.folder.glob(f"*/.*{PARTIAL}"), *self.folder.glob("*/.*.begun")):
            with suppress(OSError):  # another process may do the same
                if time.time() - file.stat().st_mtime > STALE_SECONDS:
                    file.unlink()

    def write(self, record: Record) -> Path:
        """Write a record in one step and return its file."""
        file = self.path(record.spec)
        text = json.dumps(record.as_json(), allow_nan=False, separators=(",", ":"))
        return write_whole(file, text.replace('],"', '],\n"') + "\n")

    def _read(self, file: Path) -> Record:
        try:
            record = msgspec.json.decode(file.read_bytes(), type=Record)
            n_weights = len(record.curve["weight"])
            if any(len(values) != n_weights for values in record.curve.values()):
                raise ValueError(f"a column does not have {n_weights} values, one for each weight")
        except (OSError, ValueError, KeyError, msgspec.MsgspecError) as error:
            raise InputError(
                f"{file} is not a record ({error!r}). Remove it to have the run done again."
            ) from error
        if file.name != f"{record.spec.name}.json":
            raise InputError(
                f"{file} holds the run {record.spec.name}, so it was renamed or edited. Remove "
                "it to have the run done again."
            )
        return record


def estimate_seconds(specs: Sequence[RunSpec], records: Sequence[Record]) -> tuple[float, int]:
    """Estimate the CPU time of runs from records of the same method and table.

    The second number is that of the runs that cannot be estimated.
    """
    known: dict[tuple[str, str], list[float]] = {}
    for record in records:
        pace = record.seconds / _size(record.spec)
        known.setdefault((record.spec.dataset, record.spec.method), []).append(pace)
    total, unknown = 0.0, 0
    for spec in specs:
        found = known.get((spec.dataset, spec.method))
        if found is None:
            unknown += 1
        else:
            total += _size(spec) * sum(found) / len(found)
    return total, unknown


def _size(spec: RunSpec) -> float:
    """Return the amount of work in a run, relative to other runs of its method and table."""
    return float(len(spec.settings["weights"]) * spec.settings.get("epochs", 1))
