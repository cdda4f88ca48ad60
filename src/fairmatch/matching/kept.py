"""Solved blocks on disk, from which an interrupted matching continues."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fairmatch.exceptions import CouplingError, FairmatchWarning
from fairmatch.matching.problem import Floats, Index
from fairmatch.storage.atomic import whole_file, write_whole
from fairmatch.tables.points import Points

_FORMAT = 2
_ABOUT = "matching.json"

Pairs = tuple[Index, Index, Floats]


class KeptBlocks:
    """A folder of solved blocks, or none.

    Parameters
    ----------
    folder : str or Path, optional
        The folder. None keeps nothing.
    points, units, block_size, random_state
        The arguments of `match_blocks`. It is an error if the folder holds another matching.
    """

    def __init__(
        self,
        folder: Any,
        points: tuple[Points, Points],
        units: tuple[Floats, Floats],
        block_size: int,
        random_state: int,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is None:
            return
        digest = hashlib.sha256()
        for group, side in zip(points, units, strict=True):
            for array in (group.numbers, group.codes, side):
                digest.update(np.ascontiguousarray(array).tobytes())
        about = {
            "format": _FORMAT,
            "matched": digest.hexdigest(),
            "block_size": block_size,
            "random_state": random_state,
        }
        file = self.folder / _ABOUT
        if not file.exists():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise CouplingError(
                    f"{self.folder} holds other files and no blocks of a matching. Pass a folder "
                    "that is new or empty."
                )
            self._try(lambda: write_whole(file, json.dumps(about)))
        elif _read_about(file) != about:
            raise CouplingError(
                f"{self.folder} keeps blocks of another matching: the rows, weights, block_size, "
                "random_state or file format differ. Pass another folder, or delete this one."
            )

    def last_round(self) -> tuple[int, int, Pairs | None, bool]:
        """Return the number of rounds done, the next size, the plan, and whether it is final."""
        rounds = [] if self.folder is None else sorted(self.folder.glob("round-*.npz"))
        if not rounds:
            return 0, 0, None, False
        _, number, size, *last = rounds[-1].stem.split("-")
        return int(number), int(size), _read(rounds[-1]), bool(last)

    def read_task(self, number: int, place: int) -> Pairs | None:
        """Return some blocks of a round, or None if they are not kept."""
        if self.folder is None:
            return None
        file = self._task(number, place)
        return _read(file) if file.exists() else None

    def write_task(self, number: int, place: int, pairs: Pairs) -> None:
        """Keep some blocks of a round."""
        if self.folder is not None:
            file = self._task(number, place)
            self._try(lambda: _write(file, pairs))

    def write_round(self, number: int, size: int, pairs: Pairs, last: bool) -> None:
        """Keep the plan after a round and the size of the next blocks. Remove what it replaces."""
        if self.folder is None:
            return
        older = list(self.folder.glob("round-*.npz"))
        file = self.folder / f"round-{number:03d}-{size}{'-last' * last}.npz"
        if self._try(lambda: _write(file, pairs)):
            shutil.rmtree(self._task(number - 1, 0).parent, ignore_errors=True)
            for other in older:
                other.unlink(missing_ok=True)

    def _task(self, number: int, place: int) -> Path:
        assert self.folder is not None
        return self.folder / f"blocks-{number:03d}" / f"{place:06d}.npz"

    def _try(self, write: Any) -> bool:
        """Write, or warn and stop keeping blocks. A full disk must not end hours of work."""
        try:
            write()
        except OSError as error:
            warnings.warn(
                f"Blocks can no longer be kept in {self.folder}: {error.strerror or error}. The "
                "matching continues without keeping them. An interrupt would lose all later work.",
                FairmatchWarning,
                stacklevel=2,
            )
            self.folder = None
            return False
        return True


def _read_about(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise CouplingError(
            f"{file} is damaged: {error}. It should say which matching the folder keeps. Delete "
            "the folder, or pass another one."
        ) from error


def _write(file: Path, pairs: Pairs) -> None:
    source, target, flow = pairs
    with whole_file(file) as partial, partial.open("wb") as stream:
        np.savez(stream, source=source, target=target, flow=flow)


def _read(file: Path) -> Pairs:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return arrays["source"], arrays["target"], arrays["flow"]
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise CouplingError(
            f"{file} is damaged and cannot be read as blocks: {error}. Delete it. Its blocks are "
            "then solved again."
        ) from error
