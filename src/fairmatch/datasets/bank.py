"""The Bank Marketing table, prepared as AIF360 does."""

from io import BytesIO

import pandas as pd

from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.download import read_content
from fairmatch.datasets.sources import SOURCES

# Levels with an order of their own; the other columns' levels are sorted.
_ORDERED_LEVELS = {
    "education": [
        "illiterate",
        "basic 4y",
        "basic 6y",
        "basic 9y",
        "high school",
        "professional course",
        "university degree",
    ],
    "month": ["mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    "day_of_week": ["mon", "tue", "wed", "thu", "fri"],
}


def load_bank() -> Dataset:
    """Load the Bank Marketing table (found on disk, or downloaded once).

    Returns
    -------
    Dataset
        The table has 30,488 rows. Rows with an 'unknown' value are left out. Y = 1 is a
        subscription to a term deposit. S is an age of 25 or over. The column `age` stays in X, so
        S is a function of X. The one-hot encoded table has 57 features.

    Raises
    ------
    DatasetError
        If the file is damaged, or is absent and cannot be downloaded.

    Examples
    --------
    >>> from fairmatch.datasets import load_bank
    >>> bank = load_bank()  # doctest: +SKIP
    >>> bank.favoured_group  # doctest: +SKIP
    'under 25'
    """
    (file,) = SOURCES["bank"].files
    raw = pd.read_csv(
        BytesIO(read_content(file)), sep=";", na_values=["unknown"], keep_default_na=False
    )
    raw = raw.dropna().reset_index(drop=True)
    raw.columns = raw.columns.str.replace(".", "_")
    X = raw.drop(columns="y")
    for column in X.select_dtypes(exclude="number").columns:
        words = X[column].str.removesuffix(".").str.replace(".", " ")
        X[column] = pd.Categorical(words, categories=_ORDERED_LEVELS.get(str(column)))
    return Dataset(
        name="bank",
        X=X,
        y=(raw["y"] == "yes").astype("int64").rename("subscribed"),
        sensitive_features=(raw["age"] >= 25)
        .map({False: "under 25", True: "25 and over"})
        .rename("age_group"),
        groups=("under 25", "25 and over"),
        favoured_group="under 25",
        positive_label="subscribes to a term deposit",
        batch_size=512,
        description=(
            "Clients called by a Portuguese bank. Rows with an unknown value are left out. Age "
            "stays in X, so the group is a function of X; pdays is 999 if never called before."
        ),
    )
