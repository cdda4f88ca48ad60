"""What an audit found: plain dataclasses of facts, no plotting and no arrays.

Group labels and column names are strings here, even if they have another type in the table. So
every fact can be written to JSON and read back unchanged. A fact that cannot be stated is None, and
a sentence in ``refused`` says why.
"""

from fairmatch.auditing.facts.about import About, LeakFacts
from fairmatch.auditing.facts.audit import Audit, Provenance, Spread
from fairmatch.auditing.facts.comparison import Comparison, ModelPair
from fairmatch.auditing.facts.costs import FeatureCost
from fairmatch.auditing.facts.estimates import Estimate
from fairmatch.auditing.facts.groups import AttributeFacts, CalibrationBin, Gap, GroupFacts
from fairmatch.auditing.facts.impact import CategoryImpact, ImpactTable
from fairmatch.auditing.facts.matchings import MatchedScores, Matching, PairFlips, Transport
from fairmatch.auditing.facts.nearest import CurvePoint, NearestFair, NearPeople, Reach
from fairmatch.auditing.facts.people import Difference, Individuals, Pairs
from fairmatch.auditing.facts.subsets import Condition, HalfSpaces, SubsetGap, SubsetScan

__all__ = [
    "About",
    "AttributeFacts",
    "Audit",
    "CalibrationBin",
    "CategoryImpact",
    "Comparison",
    "Condition",
    "CurvePoint",
    "Difference",
    "Estimate",
    "FeatureCost",
    "Gap",
    "GroupFacts",
    "HalfSpaces",
    "ImpactTable",
    "Individuals",
    "LeakFacts",
    "MatchedScores",
    "Matching",
    "ModelPair",
    "NearPeople",
    "NearestFair",
    "PairFlips",
    "Pairs",
    "Provenance",
    "Reach",
    "Spread",
    "SubsetGap",
    "SubsetScan",
    "Transport",
]
