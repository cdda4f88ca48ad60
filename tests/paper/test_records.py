import errno
import os
import time
from dataclasses import replace

import pytest
from paper.records import STALE_SECONDS, Record, RecordStore
from paper.specs import RunSpec

from fairmatch.exceptions import InputError


def make_record(seed=0, **keywords):
    spec = RunSpec("german", "reg", seed, {"weights": [0.5, 1.0]})
    curve = {"weight": [0.5, 1.0], "accuracy": [0.7, None], "box": [[0.0, 0.1], [0.2, 0.3]]}
    return Record(spec, curve, 1.5, {"numpy": "2.4"}, **keywords)


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path / "records")


def test_a_record_comes_back_as_it_was(store):
    record = make_record(reference_scores="AAAA")
    assert record.spec not in store
    assert store.find(record.spec) is None
    file = store.write(record)
    assert file == store.path(record.spec)
    assert record.spec in store
    assert store.find(record.spec).as_json() == record.as_json()
    assert [found.as_json() for found in store] == [record.as_json()]


def test_the_same_run_is_there_once(store):
    store.write(make_record())
    store.write(make_record())
    store.write(make_record(seed=1))
    assert [record.spec.seed for record in store] == [0, 1]


def test_a_store_without_a_folder_is_empty(store):
    assert list(store) == []
    assert not store.folder.exists()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_torn_file_is_named(store, share):
    file = store.write(make_record())
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    with pytest.raises(InputError, match=rf"{file.name} is not a record.*Remove it"):
        store.find(make_record().spec)
    with pytest.raises(InputError, match=file.name):
        list(store)


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", "null", '{"spec": {}}', "\x00\x01",
     '{"spec": {"dataset": "german", "method": "reg", "seed": "x", "settings": {}}}'],
)  # fmt: skip
def test_another_file_in_the_place_of_a_record_is_named(store, text):
    file = store.write(make_record())
    file.write_text(text)
    with pytest.raises(InputError, match=file.name):
        list(store)


@pytest.mark.parametrize(
    "curve",
    [{}, [], {"accuracy": [0.7]}, {"weight": [0.5, 1.0], "accuracy": [0.7]}, {"weight": 0.5}],
)
def test_a_curve_without_a_value_for_each_weight_is_named(store, curve):
    file = store.write(replace(make_record(), curve=curve))
    with pytest.raises(InputError, match=rf"{file.name} is not a record"):
        store.find(make_record().spec)


def test_what_is_missing_is_listed_and_every_torn_file_is_named(store):
    specs = [make_record(seed).spec for seed in range(4)]
    torn = [store.write(make_record(seed)) for seed in (0, 2)]
    store.write(make_record(3))
    assert store.missing(specs) == [specs[1]]
    for file in torn:
        file.write_text("")
    with pytest.raises(InputError, match=rf"(?s){torn[0].name}.*{torn[1].name}"):
        store.missing(specs)


def test_what_killed_writers_left_is_ignored_and_removed_when_it_is_old(store):
    file = store.write(make_record())
    old, new = (file.with_name(f".{file.name}.{k}.partial") for k in ("old", "new"))
    for partial in (old, new):
        partial.write_text("{")
    yesterday = time.time() - STALE_SECONDS - 60.0
    for path in (old, file):
        os.utime(path, (yesterday, yesterday))
    assert len(list(store)) == 1
    store.clean()
    assert files(store) == sorted([file.name, new.name])


def test_an_edited_or_renamed_file_is_named(store):
    file = store.write(make_record())
    file.write_text(file.read_text().replace('"weights":[0.5,', '"weights":[0.25,'))
    with pytest.raises(InputError, match=f"{file.name} holds the run .* renamed or edited"):
        store.find(make_record().spec)
    file.unlink()
    file = store.write(make_record())
    other = file.rename(file.with_name("copy.json"))
    with pytest.raises(InputError, match=other.name):
        list(store)


def files(store):
    return sorted(path.name for path in store.folder.rglob("*") if path.is_file())


def no_space(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing_behind(store, monkeypatch):
    store.write(make_record())
    before = files(store)
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        store.write(make_record(seed=1))
    assert files(store) == before
    assert make_record(seed=1).spec not in store


def test_a_full_disk_leaves_the_record_that_was_there(store, monkeypatch):
    store.write(make_record())
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        store.write(make_record(reference_scores="BBBB"))
    assert store.find(make_record().spec).reference_scores is None


def test_two_writers_of_a_run_do_not_share_a_partial_file(store, monkeypatch):
    names = []
    monkeypatch.setattr(os, "fsync", lambda _: names.extend(files(store)))
    monkeypatch.setattr(os, "getpid", lambda: 1)  # as on two machines
    for _ in range(2):
        store.write(make_record()).unlink()
    assert len(set(names)) == 2


def test_nothing_is_in_place_before_it_is_whole(store, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append((files(store), list(store))))
    file = store.write(make_record())
    (names, records), *_ = seen
    assert records == []
    assert names != [file.name]
    assert len(names) == 1
    assert files(store) == [file.name]


def test_a_number_that_json_has_not_is_refused_before_anything_is_written(store):
    record = make_record()
    record.curve["accuracy"] = [float("nan"), 1.0]
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.write(record)
    assert files(store) == []
