"""The German Credit table, prepared as AIF360 does."""

from io import BytesIO

import pandas as pd

from fairmatch.datasets.dataset import Dataset
from fairmatch.datasets.download import read_content
from fairmatch.datasets.sources import SOURCES

_COLUMNS = [
    "checking_account",
    "duration_months",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employed_for",
    "instalment_rate",
    "personal_status",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_instalment_plans",
    "housing",
    "existing_credits",
    "job",
    "dependants",
    "telephone",
    "foreign_worker",
    "credit",
]

# The levels that occur, in words and in the codebook's order. The codebook's A47 (vacation) and A95
# (single women) have no rows.
_LEVELS = {
    "checking_account": {
        "A11": "below 0 DM",
        "A12": "0 to 200 DM",
        "A13": "200 DM or more",
        "A14": "none",
    },
    "credit_history": {
        "A30": "no credits or all repaid",
        "A31": "all credits here repaid",
        "A32": "existing credits on time",
        "A33": "past delays",
        "A34": "critical account",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "appliances",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employed_for": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "other_instalment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "free"},
    "job": {
        "A171": "unemployed or unskilled non-resident",
        "A172": "unskilled resident",
        "A173": "skilled",
        "A174": "management or highly qualified",
    },
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}

_WOMEN = "A92"  # divorced, separated or married women; all other codes that occur are men's


def load_german() -> Dataset:
    """Load the German Credit table (bundled with the package).

    Returns
    -------
    Dataset
        The table has 1,000 rows. Y = 1 is good credit. S is sex, which is read from the personal
        status; that column is left out of X. The one-hot encoded table has 57 features.

    Examples
    --------
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> german.X["purpose"].head(2).to_list()
    ['radio or television', 'radio or television']
    >>> german.y.groupby(german.sensitive_features).mean().round(3).to_dict()
    {'female': 0.648, 'male': 0.723}
    """
    (file,) = SOURCES["german"].files
    raw = pd.read_csv(BytesIO(read_content(file)), sep=" ", header=None, names=_COLUMNS)
    X = raw.drop(columns=["personal_status", "credit"])
    for column, words in _LEVELS.items():
        X[column] = pd.Categorical(X[column].map(words), categories=list(words.values()))
    is_man = raw["personal_status"] != _WOMEN
    return Dataset(
        name="german",
        X=X,
        y=(raw["credit"] == 1).astype("int64").rename("good_credit"),
        sensitive_features=is_man.map({False: "female", True: "male"}).rename("sex"),
        groups=("female", "male"),
        favoured_group="male",
        positive_label="good credit",
        batch_size=200,
        description=(
            "Applicants for credit at a German bank. The sex is read from the personal status, "
            "which is left out of X."
        ),
    )
