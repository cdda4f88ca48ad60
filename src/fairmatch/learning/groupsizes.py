"""What happens to small groups: an error, a pool, or training without a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import GroupError, InputError, SmallGroupWarning
from fairmatch.learning.notice import notify
from fairmatch.learning.settings import Settings
from fairmatch.tables.groups import OTHER, Groups
from fairmatch.tables.parameters import check_count

# With fewer rows than this, a group's rate is known to about ±0.2 at best.
TINY = 30
_WAYS = ("error", "pool", "ignore")


@dataclass(frozen=True)
class GroupSizes(Settings):
    """How small a group may be.

    Parameters
    ----------
    min_group_size : int, default=2
        Smallest number of training rows with which a group is compared with others.
    small_groups : {"error", "pool", "ignore"}, default="error"
        What happens to smaller groups. With "error" an error lists them. With "pool" they become
        one group, "other". With "ignore" the model learns from their rows and compares them with
        nobody.
    """

    min_group_size: int = 2
    small_groups: str = "error"

    def check(self) -> None:
        """Raise unless the size is a whole number and ``small_groups`` is a known way."""
        check_count("min_group_size", self.min_group_size)
        if self.small_groups not in _WAYS:
            ways = ", ".join(map(repr, _WAYS))
            raise InputError(f"small_groups must be one of {ways}; got {self.small_groups!r}.")

    def apply(self, groups: Groups) -> tuple[Groups, tuple[int, ...]]:
        """Return the groups to learn with, and the codes of groups that are not compared.

        A warning names groups that are compared though they are tiny.
        """
        groups, ignored = self.decide(groups)
        tiny = [code for code in groups.small(TINY) if code not in ignored]
        if tiny:
            notify(
                f"These groups are so small that a gap says little about them: "
                f"{groups.sized(tiny)} rows. Pool them with others (min_group_size={TINY}, "
                "small_groups='pool'), or collect more rows.",
                SmallGroupWarning,
            )
        return groups, ignored

    def decide(self, groups: Groups) -> tuple[Groups, tuple[int, ...]]:
        """Return the groups to learn with, and the codes of groups that are not compared."""
        small, ignored = groups.small(self.min_group_size), tuple[int, ...]()
        if small and self.small_groups == "error":
            raise GroupError(
                f"These groups have fewer than min_group_size={self.min_group_size} rows: "
                f"{groups.sized(small)}. Use small_groups='pool' to make one group of them, or "
                "small_groups='ignore' to learn from them without comparing them. Or merge them "
                "with other groups, or leave them out."
            )
        if small and self.small_groups == "pool":
            groups = groups.pooled(self.min_group_size)
            if groups.n_groups < 2:
                raise GroupError(
                    f"With min_group_size={self.min_group_size} all groups were pooled into one, "
                    "and two are needed. Lower min_group_size."
                )
        elif small:
            ignored = tuple(small)
            if groups.n_groups - len(ignored) < 2:
                raise GroupError(
                    f"Fewer than two groups have min_group_size={self.min_group_size} rows: "
                    f"{groups.sized()}. Lower min_group_size, or use small_groups='pool'."
                )
        return groups, ignored


@dataclass(frozen=True)
class DecidedSizes:
    """The small groups of a whole table, applied to a part of its rows.

    Parameters
    ----------
    pooled : frozenset
        Labels of the groups that are pooled.
    ignored : frozenset
        Labels of the groups that are not compared.
    """

    pooled: frozenset[Any] = frozenset()
    ignored: frozenset[Any] = frozenset()

    def apply(self, groups: Groups) -> tuple[Groups, tuple[int, ...]]:
        """Return the groups to learn with, and the codes of groups that are not compared."""
        if self.pooled:
            names = [OTHER if label in self.pooled else label for label in groups.labels]
            labels = sorted(set(names), key=str)
            codes = np.array([labels.index(name) for name in names])[groups.codes]
            groups = replace(groups, codes=codes, labels=tuple(labels))
        ignored = (code for code, label in enumerate(groups.labels) if label in self.ignored)
        return groups, tuple(ignored)


def compared_groups(
    groups: Groups, ignored: Sequence[int]
) -> tuple[NDArray[np.intp], Groups, NDArray[np.intp]]:
    """Return the rows that are compared, their groups, and the place of every group among these.

    The place of a group that is not compared is -1.

    Examples
    --------
    >>> from fairmatch.tables.groups import read_groups
    >>> rows, kept, places = compared_groups(read_groups(["a", "b", "c", "b"]), ignored=[0])
    >>> rows.tolist(), kept.labels, places.tolist()
    ([1, 2, 3], ('b', 'c'), [-1, 0, 1])
    """
    kept = [code for code in range(groups.n_groups) if code not in ignored]
    places = np.full(groups.n_groups, -1, dtype=np.intp)
    places[kept] = np.arange(len(kept))
    rows = np.flatnonzero(places[groups.codes] >= 0)
    labels = tuple(groups.labels[code] for code in kept)
    return rows, replace(groups, codes=places[groups.codes[rows]], labels=labels), places
