"""Several models on the same people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fairmatch.auditing.facts.audit import Audit
from fairmatch.auditing.facts.files import JsonFacts, Upgrades


@dataclass(frozen=True)
class ModelPair:
    """A model against the reference model, on the same people.

    Attributes
    ----------
    model, reference : str
        Names of the two.
    rank_agreement : dict
        Group to the Spearman correlation of the two models' scores, or to None if one model's
        scores are constant there.
    decisions : dict
        Group to four counts: people selected by neither, by the reference only, by the model only,
        and by both. It is empty for predictions, which select nobody.
    undesirable_flips : dict or None
        Group to the number of undesirable flips. In a privileged group these are people whom
        only the model selects; in other groups, people whom only the reference selects. It is None
        where no group was named as privileged.
    """

    model: str
    reference: str
    rank_agreement: dict[str, float | None]
    decisions: dict[str, tuple[int, int, int, int]]
    undesirable_flips: dict[str, int] | None


def _upgraded(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "audits": [Audit.UPGRADES[1](audit) for audit in content["audits"]]}


@dataclass(frozen=True)
class Comparison(JsonFacts):
    """Two or more models on the same people.

    Made by `fairmatch.compare_models`.

    Attributes
    ----------
    audits : tuple of Audit
        One audit per model, the reference first. All of them sample the same people.
    pairs : tuple of ModelPair
        Every other model against the reference.
    privileged : str or None
        The favoured group, where one was named; several are separated by semicolons.
    """

    SCHEMA: ClassVar[str] = "fairmatch.Comparison"
    SCHEMA_VERSION: ClassVar[int] = 2
    UPGRADES: ClassVar[Upgrades] = {1: _upgraded}

    audits: tuple[Audit, ...]
    pairs: tuple[ModelPair, ...]
    privileged: str | None

    def without_individuals(self) -> Comparison:
        """Return the same comparison without the rows of people."""
        return replace(self, audits=tuple(a.without_individuals() for a in self.audits))

    def hiding(self, *columns: str) -> Comparison:
        """Return the same comparison, with some columns left out of the rows of people.

        Parameters
        ----------
        *columns : str
            Names of the columns.
        """
        return replace(self, audits=tuple(a.hiding(*columns) for a in self.audits))

    def __repr__(self) -> str:
        names = ", ".join(repr(audit.model_name) for audit in self.audits)
        return f"<Comparison of {names} on {self.audits[0].n_rows:,} people>"

    def _repr_html_(self) -> str:
        return "".join(audit._repr_html_() for audit in self.audits)
