"""The address of an estimator's page, for the link that scikit-learn shows in a notebook."""

import os
from pathlib import Path

# The site as `make docs` builds it in a clone.
_BUILT = Path(__file__).parents[3] / "docs" / "_build" / "html"


def page_of(estimator: type) -> str:
    """Return the address of an estimator's page, or "" if there is no site.

    Parameters
    ----------
    estimator : class
        An estimator of fairmatch.

    Returns
    -------
    str
        The page on the site that the environment variable ``FAIRMATCH_DOCS`` names, which is an
        address or a folder. Without the variable, it is the page of the site that was built in
        this clone. If there is no such page, it is "".

    Examples
    --------
    >>> class Own: ...
    >>> page_of(Own)
    ''
    """
    if not estimator.__module__.startswith("fairmatch."):
        return ""
    name = f"reference/generated/fairmatch.{estimator.__name__}.html"
    given = os.environ.get("FAIRMATCH_DOCS", "")
    if "://" in given:
        return f"{given.rstrip('/')}/{name}"
    page = Path(given or _BUILT) / name
    return page.resolve().as_uri() if page.is_file() else ""
