"""Gaps between groups, and changes between two models. Gaps have fairlearn's signature."""

from fairmatch.measures.changes import (
    Flips,
    consistency,
    consistency_by_flip,
    rank_agreement,
    undesirable_flips,
)
from fairmatch.measures.gaps import (
    demographic_parity_gap,
    ks_parity_gap,
    matched_parity_gap,
    mean_parity_gap,
    total_variation_parity_gap,
    wasserstein_parity_gap,
)
from fairmatch.measures.odds import equalized_odds_gap, false_positive_gap, true_positive_gap
from fairmatch.measures.pairs import PairGap, gaps_by_pair
from fairmatch.measures.rates import SelectionRate, selection_rates, selection_ratio
from fairmatch.measures.subsets import random_subset_gaps, subset_parity_gap
from fairmatch.measures.table import MEASURES, Measure, gap_table

__all__ = [
    "MEASURES",
    "Flips",
    "Measure",
    "PairGap",
    "SelectionRate",
    "consistency",
    "consistency_by_flip",
    "demographic_parity_gap",
    "equalized_odds_gap",
    "false_positive_gap",
    "gap_table",
    "gaps_by_pair",
    "ks_parity_gap",
    "matched_parity_gap",
    "mean_parity_gap",
    "random_subset_gaps",
    "rank_agreement",
    "selection_rates",
    "selection_ratio",
    "subset_parity_gap",
    "total_variation_parity_gap",
    "true_positive_gap",
    "undesirable_flips",
    "wasserstein_parity_gap",
]
