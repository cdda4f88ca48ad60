"""The paper's four benchmark tables, and a large one.

Adult and German Credit are part of the package. Bank Marketing and the Dutch census are searched
for in the folder that the environment variable ``FAIRMATCH_DATA`` names, and then in the user's
cache folder. If they are in neither, they are downloaded once and their checksum is verified.
ACSIncome is searched for only in ``FAIRMATCH_DATA``.
"""

from fairmatch.datasets.loaders import (
    DATASET_NAMES,
    PAPER_DATASETS,
    Dataset,
    DatasetSummary,
    GroupSummary,
    Split,
    load_acsincome,
    load_adult,
    load_bank,
    load_dataset,
    load_dutch,
    load_german,
    paper_split,
    summarise,
)

__all__ = [
    "DATASET_NAMES",
    "PAPER_DATASETS",
    "Dataset",
    "DatasetSummary",
    "GroupSummary",
    "Split",
    "load_acsincome",
    "load_adult",
    "load_bank",
    "load_dataset",
    "load_dutch",
    "load_german",
    "paper_split",
    "summarise",
]
