"""Selection and scoring rates by category, as bias audits are filed."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose

from fairmatch.auditing.facts.estimates import Estimate

RULE = (
    "6 RCNY 5-300 to 5-304 (Local Law 144 of 2021), as adopted by the New York City Department of "
    "Consumer and Worker Protection on 6 April 2023 and enforced since 5 July 2023"
)
"""The text whose vocabulary the tables follow."""

SMALL_SHARE = 0.02
"""The rule allows categories with a smaller share of the people to be left out of impact ratios."""

FOUR_FIFTHS = 0.8
"""29 CFR 1607.4(D) sees evidence of adverse impact below this ratio. Local Law 144 sets none."""


@dataclass(frozen=True)
class CategoryImpact:
    """One category: how often its people are selected, and how often they score high.

    Attributes
    ----------
    category : str
        The category, such as "female" or "female, Black".
    values : tuple of str
        The value of each attribute.
    n_people, n_selected : int
        Number of people in the category, and number of those selected.
    share : float
        Its share of all people whose category is known.
    selection_rate : Estimate
        Share of the people who are selected.
    impact_ratio : Estimate
        Selection rate divided by that of the most selected category.
    p_value : float or None
        P-value of Fisher's exact test that the selection rate equals that of the most selected
        category. It is None for that category itself, or if there is no such category.
    scoring_rate : Estimate or None
        Share of the people whose score is better than the median of everybody. It is None where
        the scores are decisions.
    scoring_ratio : Estimate or None
        Scoring rate divided by that of the category with the highest scoring rate.
    is_small : bool
        Whether its share is below 2%. Such a category is shown, but others are not compared with
        it.
    below_four_fifths : bool or None
        Whether the impact ratio is below 0.8. It is None without a ratio.
    is_few : bool
        Whether the people are so few that the audit states nothing else about them.
    weight, weight_selected, effective_size : float or None
        With survey weights: the weight of the people, the weight of those selected, and the
        effective number of people. The selection rate is the second divided by the first. They are
        None without survey weights.
    """

    category: str
    values: tuple[str, ...]
    n_people: int
    n_selected: int
    share: float
    selection_rate: Estimate
    impact_ratio: Estimate
    p_value: float | None
    scoring_rate: Estimate | None
    scoring_ratio: Estimate | None
    is_small: bool
    below_four_fifths: bool | None
    is_few: bool = False
    weight: float | None = None
    weight_selected: float | None = None
    effective_size: float | None = None


@dataclass(frozen=True)
class ImpactTable:
    """The categories of one attribute, or of several crossed.

    Attributes
    ----------
    attributes : tuple of str
        The attribute, or those whose combinations are the categories.
    categories : tuple of CategoryImpact
        One per category that occurs, in the order of the labels.
    n_people : int
        Number of people whose category is known.
    n_unknown : int
        Number of people who were scored but whose category is unknown. They are left out.
    most_selected, highest_scoring : str or None
        The categories that others are compared with; of several with the same rate, the first.
    median_score : float or None
        Median score of everybody. It is None where the scores are decisions.
    rule : str
        The text whose vocabulary the table follows.
    """

    attributes: tuple[str, ...]
    categories: tuple[CategoryImpact, ...]
    n_people: int
    n_unknown: int
    most_selected: str | None
    highest_scoring: str | None
    median_score: float | None
    rule: str = RULE

    def highest(self, rate: str) -> tuple[str, ...]:
        """Return the categories that share the highest rate, of those that are not small.

        The result is empty if all their rates are 0.

        Parameters
        ----------
        rate : {"selection_rate", "scoring_rate"}
            Which rate.
        """
        rates: dict[str, float] = {
            category.category: getattr(category, rate).value
            for category in self.categories
            if not category.is_small and getattr(category, rate) is not None
        }
        most = max(rates.values(), default=0.0)
        if most == 0.0:
            return ()
        return tuple(name for name, own in rates.items() if isclose(own, most, rel_tol=1e-9))
