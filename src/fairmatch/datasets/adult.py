"""The Adult census table, prepared as AIF360 does."""

from collections.abc import Sequence
from io import BytesIO

import pandas as pd

from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.download import read_content
from fairmatch.datasets.sensitive import choose_sensitive
from fairmatch.datasets.sources import SOURCES

_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]


def load_adult(*, sensitive: str | Sequence[str] = "sex") -> Dataset:
    """Load the Adult census table (bundled with the package).

    Parameters
    ----------
    sensitive : {"sex", "race"} or sequence of them, default="sex"
        The sensitive attribute, which is left out of X. With a sequence, the groups are the
        combinations of its attributes, and ``sensitive_features`` is a table of them.

    Returns
    -------
    Dataset
        The table has 45,222 rows: the publisher's training rows, then its test rows. Rows with a
        missing value are left out. Y = 1 is an income over $50,000. S is sex, race (five groups),
        or both. With sex as S, the one-hot encoded table has 101 features.

    Raises
    ------
    InputError
        If there is no such sensitive attribute.

    Examples
    --------
    >>> from fairmatch.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.X.shape, adult.favoured_group
    ((45222, 12), 'male')
    >>> load_adult(sensitive=["sex", "race"]).groups[2]
    'female, Black'
    """
    raw = pd.concat(
        [
            pd.read_csv(
                BytesIO(read_content(file)),
                header=None,
                names=_COLUMNS,
                comment="|",  # adult.test opens with a comment line
                skipinitialspace=True,
                na_values=["?"],
                keep_default_na=False,
            )
            for file in SOURCES["adult"].files
        ],
        ignore_index=True,
    )
    raw = raw.dropna().reset_index(drop=True)
    # fnlwgt is the sampling weight of the census, not a trait of the person.
    people = raw.drop(columns=["fnlwgt", "income"])
    people["sex"] = people["sex"].str.lower()
    # adult.test ends each label with a full stop
    y = raw["income"].str.startswith(">50K").astype("int64").rename("income_over_50k")
    chosen = choose_sensitive(people[["sex", "race"]], y, sensitive)
    X = people.drop(columns=chosen.names)
    for column in X.select_dtypes(exclude="number").columns:
        X[column] = X[column].astype("category")
    return Dataset(
        name="adult",
        X=X,
        y=y,
        sensitive_features=chosen.features,
        groups=chosen.groups,
        favoured_group=chosen.favoured_group,
        positive_label="income over $50,000 a year",
        batch_size=1024,
        description=(
            "People in the US census of 1994. Rows with a missing value are left out, and so is "
            "the sampling weight fnlwgt."
        ),
    )
