import pytest

from fairmatch.datasets import DATASET_NAMES, summarise
from fairmatch.datasets.registry import SOURCES, locate
from fairmatch.exceptions import DatasetError


def test_bundled_tables_are_summarised():
    german = summarise("german")
    assert (german.n_rows, german.n_features, german.location) == (1000, 57, "bundled")
    assert [(group.name, group.size) for group in german.groups] == [("female", 310), ("male", 690)]
    assert [round(group.base_rate, 3) for group in german.groups] == [0.648, 0.723]
    assert german.licence == "CC BY 4.0"


@pytest.mark.parametrize("name", ["bank", "dutch", "acsincome"])
def test_absent_tables_are_summarised_without_a_download(isolated, name):
    # The fixture's network refuses, so that a download would be an error here.
    summary = summarise(name)
    assert summary.location is None
    assert summary.n_rows is None
    assert summary.groups == ()


@pytest.mark.parametrize("name", ["bank", "dutch", "acsincome"])
def test_tables_on_disk_are_summarised(needs, name):
    needs(name)
    summary = summarise(name)
    assert summary.location == locate(SOURCES[name].files[0])
    assert summary.n_rows is not None


def test_an_unknown_name_is_an_error():
    with pytest.raises(DatasetError, match="compas"):
        summarise("compas")


def test_every_source_has_a_loader():
    assert set(DATASET_NAMES) == set(SOURCES)
