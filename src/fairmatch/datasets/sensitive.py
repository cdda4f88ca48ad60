"""The sensitive attributes of a table, and the groups that they form."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import pandas as pd

from fairmatch.exceptions import InputError

SensitiveFeatures: TypeAlias = "pd.Series[str] | pd.DataFrame"


class SensitiveChoice(NamedTuple):
    """The sensitive attributes of a table, as the caller of a loader chose them.

    Attributes
    ----------
    features : pandas.Series or pandas.DataFrame
        One column, or a table of several attributes.
    names : list of str
        Names of the attributes. These columns are left out of X.
    groups : tuple of str
        The groups that occur, sorted.
    favoured_group : str
        The group with the highest rate of Y = 1.
    """

    features: SensitiveFeatures
    names: list[str]
    groups: tuple[str, ...]
    favoured_group: str


def name_groups(sensitive_features: SensitiveFeatures) -> "pd.Series[str]":
    """Return the name of each row's group.

    Parameters
    ----------
    sensitive_features : pandas.Series or pandas.DataFrame
        One column, or a table of several attributes.

    Returns
    -------
    pandas.Series
        The column itself, or the combinations of the attributes' values.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.datasets.sensitive import name_groups
    >>> name_groups(pd.DataFrame({"sex": ["female"], "race": ["Black"]})).to_list()
    ['female, Black']
    """
    if isinstance(sensitive_features, pd.Series):
        return sensitive_features
    attributes = sensitive_features.astype(str)
    first, others = attributes.iloc[:, 0], attributes.iloc[:, 1:]
    return first.str.cat(others, sep=", ") if len(others.columns) else first


def choose_sensitive(
    attributes: pd.DataFrame, y: "pd.Series[int]", sensitive: str | Sequence[str]
) -> SensitiveChoice:
    """Choose the sensitive attributes of a table.

    Parameters
    ----------
    attributes : pandas.DataFrame
        The attributes to choose from, as text.
    y : pandas.Series
        Labels, 0 or 1.
    sensitive : str or sequence of str
        Name of an attribute, or names of several.

    Returns
    -------
    SensitiveChoice
        The attributes, with the groups that they form.

    Raises
    ------
    InputError
        If there is no such attribute, if none is named, or if one is named twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairmatch.datasets.sensitive import choose_sensitive
    >>> people = pd.DataFrame({"sex": ["female", "male"], "race": ["Black", "White"]})
    >>> choose_sensitive(people, pd.Series([1, 0]), ["sex", "race"]).favoured_group
    'female, Black'
    """
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    known = list(attributes.columns)
    if not names or len(set(names)) < len(names) or not set(names) <= set(known):
        raise InputError(
            f"sensitive must be one of {', '.join(map(repr, known))}, or a list of them without "
            f"repetition; got {sensitive!r}."
        )
    features: SensitiveFeatures = (
        attributes[sensitive] if isinstance(sensitive, str) else attributes[names]
    )
    rates = y.groupby(name_groups(features)).mean()  # sorted by the groups' names
    return SensitiveChoice(features, names, tuple(rates.index), str(rates.idxmax()))
