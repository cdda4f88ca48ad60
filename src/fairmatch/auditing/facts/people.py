"""The people of the sample, one by one, and who is matched with whom."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairmatch.auditing.facts.nearest import NearPeople


@dataclass(frozen=True)
class Pairs:
    """Matched people, as positions in the lists of `Individuals`; one entry per pair.

    Attributes
    ----------
    first, second : tuple of int
        The person of the first group, and of the second.
    mass : tuple of float
        Weight of the pair; sums to 1.
    score_gap : tuple of float
        Absolute difference of the two scores.
    distance : tuple of float
        Squared distance of the two people; empty without features.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    mass: tuple[float, ...]
    score_gap: tuple[float, ...]
    distance: tuple[float, ...]


@dataclass(frozen=True)
class Difference:
    """A column in which two matched people differ.

    Attributes
    ----------
    column : str
        The column.
    first, second : str, float or None
        Value of the person of the first group, and of the second; None is missing.
    """

    column: str
    first: str | float | None
    second: str | float | None


@dataclass(frozen=True)
class Individuals:
    """The people of the sample, and who is matched with whom. These are people's rows.

    Attributes
    ----------
    ids : tuple of str
        Who they are: the ``ids`` given, or else row numbers.
    rows : tuple of int
        Row positions in the audited table.
    group : tuple of int
        Position of their group in `Audit.groups`.
    scores : tuple of float
        Their scores.
    labels : tuple of int
        1 where the label is positive; empty without labels.
    columns : dict
        Column name to the people's values; numbers, text, or None where missing.
    hidden : tuple of str
        Columns that were left out on purpose.
    pairs : dict
        Matching ("fair", "nearest_fair", "marginal", "joint") to its pairs.
    selected : tuple of int
        1 where the person is selected; empty of predictions, and in audits of earlier versions.
    weights : tuple of float
        Weight of the person's row; empty where every row is one person.
    near : tuple of NearPeople
        For each pair of groups matched, everybody's nearest people of the other group, of those
        in the sample; empty without features.
    across : dict
        Matching, or "near" for the nearest person, to the pairs of some people of every two
        groups neither of which is the reference; empty for two groups.
    """

    ids: tuple[str, ...]
    rows: tuple[int, ...]
    group: tuple[int, ...]
    scores: tuple[float, ...]
    labels: tuple[int, ...]
    columns: dict[str, tuple[str | float | None, ...]]
    hidden: tuple[str, ...]
    pairs: dict[str, Pairs]
    selected: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    near: tuple[NearPeople, ...] = ()
    across: dict[str, Pairs] = field(default_factory=dict)

    def is_flip(self, pair: int, *, matching: str = "fair") -> bool:
        """Return whether one person of a pair is selected and the other is not."""
        pairs = self.pairs[matching]
        return self.selected[pairs.first[pair]] != self.selected[pairs.second[pair]]

    def differences(self, pair: int, *, matching: str = "fair") -> list[Difference]:
        """Return the columns in which the two people of a pair differ."""
        pairs = self.pairs[matching]
        first, second = pairs.first[pair], pairs.second[pair]
        return [
            Difference(name, values[first], values[second])
            for name, values in self.columns.items()
            if values[first] != values[second]
        ]

    def counterparts(self, person: int, *, matching: str = "fair") -> list[int]:
        """Return the pairs that a person is part of, the heaviest first."""
        pairs = self.pairs[matching]
        both = enumerate(zip(pairs.first, pairs.second, strict=True))
        found = [k for k, members in both if person in members]
        return sorted(found, key=lambda k: -pairs.mass[k])

    def most_unlike(self, n_pairs: int = 10, *, matching: str = "fair") -> list[int]:
        """Return the pairs whose people are farthest apart; empty without features."""
        distance = self.pairs[matching].distance
        return sorted(range(len(distance)), key=lambda k: -distance[k])[:n_pairs]
