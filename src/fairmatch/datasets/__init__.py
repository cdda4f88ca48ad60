"""The paper's four benchmark tables.

Adult and German Credit are part of the package. Bank Marketing and the Dutch census are looked
for in the folder that the environment variable ``FAIRMATCH_DATA`` names, then in the user's cache
folder, and are otherwise downloaded once, with a checksum.
"""

from fairmatch.datasets.adult import load_adult
from fairmatch.datasets.bank import load_bank
from fairmatch.datasets.catalogue import DATASET_NAMES, load_dataset
from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.dutch import load_dutch
from fairmatch.datasets.german import load_german
from fairmatch.datasets.split import Split, paper_split
from fairmatch.datasets.summary import DatasetSummary, GroupSummary, summarise

__all__ = [
    "DATASET_NAMES",
    "Dataset",
    "DatasetSummary",
    "GroupSummary",
    "Split",
    "load_adult",
    "load_bank",
    "load_dataset",
    "load_dutch",
    "load_german",
    "paper_split",
    "summarise",
]
