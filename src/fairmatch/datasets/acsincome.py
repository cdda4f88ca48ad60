"""The ACSIncome table: the American Community Survey of 2018, made by folktables."""

from collections.abc import Sequence
from io import BytesIO

import pandas as pd

from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.download import read_content
from fairmatch.datasets.sensitive import choose_sensitive
from fairmatch.datasets.sources import SOURCES
from fairmatch.exceptions import MissingExtraError

_NAMES = {
    "AGEP": "age",
    "SCHL": "schooling",
    "WKHP": "hours_per_week",
    "MAR": "marital_status",
    "RELP": "relationship",
    "COW": "class_of_worker",
    "OCCP": "occupation",
    "POBP": "place_of_birth",
    "SEX": "sex",
    "RAC1P": "race",
}
# The words of the survey's codebook. RAC1P in this table is the survey's code minus one.
_LEVELS = {
    "marital_status": {
        1: "married",
        2: "widowed",
        3: "divorced",
        4: "separated",
        5: "never married",
    },
    "class_of_worker": {
        1: "company",
        2: "non-profit organisation",
        3: "local government",
        4: "state government",
        5: "federal government",
        6: "self-employed, not incorporated",
        7: "self-employed, incorporated",
        8: "family business without pay",
    },
    "sex": {1: "male", 2: "female"},
    "race": {
        0: "White",
        1: "Black",
        2: "American Indian",
        3: "Alaska Native",
        4: "tribe not named",
        5: "Asian",
        6: "Pacific Islander",
        7: "another race",
        8: "two or more races",
    },
}
# Categories for which only the codes are known here.
_CODES = ("relationship", "occupation", "place_of_birth")


def load_acsincome(*, sensitive: str | Sequence[str] = "sex") -> Dataset:
    """Load the ACSIncome table (found in the folder ``FAIRMATCH_DATA``, never downloaded).

    Parameters
    ----------
    sensitive : {"sex", "race"} or sequence of them, default="sex"
        The sensitive attribute, which is left out of X. With a sequence, the groups are the
        combinations of its attributes, and ``sensitive_features`` is a table of them.

    Returns
    -------
    Dataset
        The table has 332,900 rows. Y = 1 is an income over $50,000. S is sex, race (nine groups),
        or both. Schooling, hours per week and age are numbers. The other features are categories.

    Raises
    ------
    DatasetError
        If the file is absent or damaged.
    InputError
        If there is no such sensitive attribute.
    MissingExtraError
        If pyarrow, which reads the file, is not installed.

    Examples
    --------
    >>> from fairmatch.datasets import load_acsincome
    >>> load_acsincome(sensitive="race").favoured_group  # doctest: +SKIP
    'Asian'
    """
    (file,) = SOURCES["acsincome"].files
    content = read_content(file)
    try:
        raw = pd.read_parquet(BytesIO(content))
    except ImportError as error:
        raise MissingExtraError(
            f"{file.name} is a Parquet file, and reading one needs pyarrow: pip install "
            "'fairmatch[paper]'."
        ) from error
    raw = raw.reset_index(drop=True).rename(columns=_NAMES)
    y = raw["PINCP"].astype("int64").rename("income_over_50k")
    people = raw[list(_NAMES.values())].astype("int64")
    for column, words in _LEVELS.items():
        people[column] = pd.Categorical(people[column].map(words), categories=list(words.values()))
    for column in _CODES:  # in the order of the codes, written without a decimal point
        category = people[column].astype("category")
        people[column] = category.cat.rename_categories(str)
    chosen = choose_sensitive(people[["sex", "race"]].astype(str), y, sensitive)
    return Dataset(
        name="acsincome",
        X=people.drop(columns=chosen.names),
        y=y,
        sensitive_features=chosen.features,
        groups=chosen.groups,
        favoured_group=chosen.favoured_group,
        positive_label="income over $50,000 a year",
        batch_size=1024,
        description=(
            "Working people in the American Community Survey of 2018: the part of folktables' "
            "ACSIncome that Aequitas publishes for validation. Occupations, places of birth and "
            "relationships are the survey's codes."
        ),
    )
