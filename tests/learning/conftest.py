"""The tables of these tests are small on purpose; tests of the warnings ask for them."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "learning" in item.path.parts and "warns" not in item.keywords:
            item.add_marker(
                pytest.mark.filterwarnings("ignore::fairmatch.exceptions.SmallGroupWarning"),
                append=False,
            )
