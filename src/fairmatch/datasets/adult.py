"""The Adult census table, prepared as AIF360 does."""

from io import BytesIO

import pandas as pd

from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.download import read_content
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


def load_adult() -> Dataset:
    """Load the Adult census table (bundled with the package).

    Returns
    -------
    Dataset
        45,222 rows, the publisher's training rows before its test rows, those with a missing
        value left out; Y = 1 is an income over $50,000; S is sex. One-hot encoded it has 101
        features.

    Examples
    --------
    >>> from fairmatch.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.X.shape, adult.favoured_group
    ((45222, 12), 'male')
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
    # fnlwgt is the census's sampling weight, not a trait of the person.
    X = raw.drop(columns=["fnlwgt", "sex", "income"])
    for column in X.select_dtypes(exclude="number").columns:
        X[column] = X[column].astype("category")
    return Dataset(
        name="adult",
        X=X,
        # adult.test ends each label with a full stop
        y=raw["income"].str.startswith(">50K").astype("int64").rename("income_over_50k"),
        sensitive_features=raw["sex"].str.lower(),
        groups=("female", "male"),
        favoured_group="male",
        positive_label="income over $50,000 a year",
        batch_size=1024,
        description=(
            "People in the US census of 1994. Rows with a missing value are left out, and so is "
            "the sampling weight fnlwgt."
        ),
    )
