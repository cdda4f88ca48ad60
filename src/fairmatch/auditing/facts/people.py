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
        The person of the first group, and the person of the second.
    mass : tuple of float
        Weight of each pair. The weights sum to 1.
    score_gap : tuple of float
        Absolute difference of the two scores.
    distance : tuple of float
        Squared distance between the two people. It is empty without features.
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
        Value of the person of the first group, and of the person of the second. None means that
        the value is missing.
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
        Identifiers of the people: the ``ids`` given, or else row numbers.
    rows : tuple of int
        Their row positions in the audited table.
    group : tuple of int
        Positions of their groups in `Audit.groups`.
    scores : tuple of float
        Their scores.
    labels : tuple of int
        1 where the label is positive, else 0. It is empty without labels.
    columns : dict
        Column name to the values of the people: numbers, text, or None where missing.
    hidden : tuple of str
        Columns that were left out on purpose.
    pairs : dict
        Matching ("fair", "nearest_fair", "marginal", "joint") to its pairs.
    selected : tuple of int
        1 where the person is selected, else 0. It is empty for predictions, and in audits of
        earlier versions.
    weights : tuple of float
        Weight of each person's row. It is empty where every row is one person.
    near : tuple of NearPeople
        For each pair of groups matched, the nearest people of the other group in the sample. It is
        empty without features.
    across : dict
        Matching, or "near" for the nearest person, to pairs of some people of every two groups
        other than the reference group. It is empty for two groups.
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
        """Return whether one person of a pair is selected and the other is not.

        Parameters
        ----------
        pair : int
            Position of the pair.
        matching : str, default="fair"
            The matching, a key of ``pairs``.
        """
        pairs = self.pairs[matching]
        return self.selected[pairs.first[pair]] != self.selected[pairs.second[pair]]

    def differences(self, pair: int, *, matching: str = "fair") -> list[Difference]:
        """Return the columns in which the two people of a pair differ.

        Parameters
        ----------
        pair : int
            Position of the pair.
        matching : str, default="fair"
            The matching, a key of ``pairs``.
        """
        pairs = self.pairs[matching]
        first, second = pairs.first[pair], pairs.second[pair]
        return [
            Difference(name, values[first], values[second])
            for name, values in self.columns.items()
            if values[first] != values[second]
        ]

    def counterparts(self, person: int, *, matching: str = "fair") -> list[int]:
        """Return the positions of the pairs that a person is part of, with the heaviest first.

        Parameters
        ----------
        person : int
            Position of the person in the lists.
        matching : str, default="fair"
            The matching, a key of ``pairs``.
        """
        pairs = self.pairs[matching]
        both = enumerate(zip(pairs.first, pairs.second, strict=True))
        found = [k for k, members in both if person in members]
        return sorted(found, key=lambda k: -pairs.mass[k])

    def most_unlike(self, n_pairs: int = 10, *, matching: str = "fair") -> list[int]:
        """Return the positions of the pairs whose people are farthest apart.

        Parameters
        ----------
        n_pairs : int, default=10
            How many pairs to return at most.
        matching : str, default="fair"
            The matching, a key of ``pairs``.

        Returns
        -------
        list of int
            Positions of the pairs. It is empty without features.
        """
        distance = self.pairs[matching].distance
        return sorted(range(len(distance)), key=lambda k: -distance[k])[:n_pairs]
