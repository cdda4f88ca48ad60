"""Gaps between groups, and changes between two models. Gaps have fairlearn's signature."""

from fairmatch.measures.chance import Distance
from fairmatch.measures.changes import (
    Flips,
    consistency,
    consistency_by_flip,
    random_subset_gaps,
    rank_agreement,
    subset_parity_gap,
    undesirable_flips,
)
from fairmatch.measures.conditional import ConditionalGap, StratumGap, conditional_gaps
from fairmatch.measures.gaps import (
    ClassRateGap,
    PairGap,
    SelectionRate,
    demographic_parity_gap,
    equalized_odds_gap,
    false_positive_gap,
    gap_table,
    gaps_by_class,
    gaps_by_pair,
    ks_parity_gap,
    matched_parity_gap,
    mean_parity_gap,
    selection_rates,
    selection_ratio,
    total_variation_parity_gap,
    true_positive_gap,
    wasserstein_parity_gap,
    worst_case_odds_gap,
)
from fairmatch.measures.numbers import generalized_parity_gap
from fairmatch.measures.planning import detectable_difference, detectable_mean_difference
from fairmatch.measures.registry import MEASURES, Measure

__all__ = [
    "MEASURES",
    "ClassRateGap",
    "ConditionalGap",
    "Distance",
    "Flips",
    "Measure",
    "PairGap",
    "SelectionRate",
    "StratumGap",
    "conditional_gaps",
    "consistency",
    "consistency_by_flip",
    "demographic_parity_gap",
    "detectable_difference",
    "detectable_mean_difference",
    "equalized_odds_gap",
    "false_positive_gap",
    "gap_table",
    "gaps_by_class",
    "gaps_by_pair",
    "generalized_parity_gap",
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
    "worst_case_odds_gap",
]
