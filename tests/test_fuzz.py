"""Damaged and hostile files: each is refused with a typed error, or read as what it is.

The examples are drawn from a fixed seed and bounded in number, so a run takes seconds and is the
same each time. ``FAIRMATCH_FUZZ=20`` draws twenty times as many.
"""

import json
import os
import shutil
import warnings
from contextlib import suppress
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from damage import edit, sign
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import QUICK, made, people

from fairmatch import (
    FTMBoostingClassifier,
    FTMClassifier,
    ScoreAdjustment,
    fit_adjustment,
    load,
)
from fairmatch.auditing.streaming import ParquetFiles
from fairmatch.exceptions import FairmatchError
from fairmatch.people.files import read_table

X, Y, GROUP = people()


def drawn(n_examples):
    return settings(
        max_examples=n_examples * int(os.environ.get("FAIRMATCH_FUZZ", "1")),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


#: How bytes are damaged: where, what is put there, and how many bytes it replaces.
CUTS = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from([b"", b"\0", b"\xff\xfe", b"-1", b"9" * 20, b"nan", b'"', b"\n", b"PAR1"])
        | st.binary(max_size=6),
        st.sampled_from([0, 1, 4, 50, 10**9]),
    ),
    min_size=1,
    max_size=3,
)
HOSTILE = st.sampled_from(
    [None, True, -1, 0, 10**400, 2**63, 1e308, "", "x" * 999, "\ud800", [], {}, [[]], [None],
     "__class__", "../../etc/passwd", {"n_jobs": 5000}, 0.5, float("inf"), float("nan")]
)  # fmt: skip


def cut(content, cuts):
    for share, new, length in cuts:
        at = int(share * len(content))
        content = content[:at] + new + content[at + length :]
    return content


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*path, name))


def put(value, path, new):
    if not path:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


def refused_or_used(read, use=lambda found: None):
    """Any other error than a typed one fails the test."""
    with warnings.catch_warnings(), suppress(FairmatchError):
        warnings.simplefilter("ignore")
        use(read())


def score(model):
    found = model.predict_proba(X[:5], sensitive_features=GROUP[:5])
    assert not np.isnan(found).any()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    made(FTMBoostingClassifier, n_estimators=3).fit(X, Y, sensitive_features=GROUP).save(home / "t")
    made(FTMClassifier, **QUICK).fit(X, Y, sensitive_features=GROUP).save(home / "n")
    return home


@pytest.fixture
def copied(models, tmp_path):
    """Return a fresh copy of one of the models."""

    def copy(name):
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        return shutil.copytree(models / name, tmp_path / "model")

    return copy


@drawn(100)
@given(st.sampled_from("tn"), st.booleans(), CUTS)
def test_bytes_of_a_model(copied, name, describes, cuts):
    folder = copied(name)
    named = "model.json" if describes else {"t": "trees.txt", "n": "weights.safetensors"}[name]
    (folder / named).write_bytes(cut((folder / named).read_bytes(), cuts))
    refused_or_used(lambda: load(folder), score)


@drawn(100)
@given(st.sampled_from("tn"), st.randoms(use_true_random=False), HOSTILE)
def test_values_of_a_model_with_right_checksums(copied, name, random, value):
    """Whoever can write a file can also put its checksums right."""
    folder = copied(name)
    description = json.loads((folder / "model.json").read_text())
    place = random.choice(list(places(description))[1:])
    (folder / "model.json").write_text(json.dumps(put(description, place, value)))
    sign(folder)
    refused_or_used(lambda: load(folder), score)


@drawn(60)
@given(CUTS)
def test_trees_with_right_checksums(copied, cuts):
    folder = copied("t")
    content = cut((folder / "trees.txt").read_bytes(), cuts)
    (folder / "trees.txt").write_bytes(content)
    edit(folder, weights_sha256=sha256(content).hexdigest())
    sign(folder)
    refused_or_used(lambda: load(folder), score)


@pytest.fixture(scope="module")
def adjustment(tmp_path_factory):
    scores = np.random.default_rng(0).random(60).round(2)
    file = tmp_path_factory.mktemp("adjustment") / "a.json"
    given = np.repeat(["x", "y", "z"], 20)
    return fit_adjustment(scores, sensitive_features=["a", "b"] * 30, given=given).save(file)


@drawn(120)
@given(st.randoms(use_true_random=False), HOSTILE, st.none() | CUTS)
def test_adjustments(adjustment, tmp_path, random, value, cuts):
    file, content = tmp_path / "a.json", adjustment.read_bytes()
    if cuts is None:
        known = json.loads(content)
        content = json.dumps(put(known, random.choice(list(places(known))), value)).encode()
    else:
        content = cut(content, cuts)
    file.write_bytes(content)
    refused_or_used(
        lambda: ScoreAdjustment.load(file),
        lambda made: made.apply([0.2, 0.8], sensitive_features=["a", "b"], given=["x", "y"]),
    )


TEXT = st.text(st.sampled_from("a1.,;\t|\"'\n\r =é-\0\ud800"), max_size=60)


@drawn(150)
@given(TEXT.map(lambda t: t.encode("utf-8", "surrogatepass")) | st.binary(max_size=60), CUTS)
def test_csv(tmp_path, content, cuts):
    file = tmp_path / "people.csv"
    for written in (content, cut(b"age,sex\n20,f\n30,m\n" + content, cuts)):
        file.write_bytes(written)
        refused_or_used(lambda: read_table(file))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    file = tmp_path_factory.mktemp("table") / "a.parquet"
    frame = pd.DataFrame({"score": np.linspace(0, 1, 50), "sex": ["f", "m"] * 25})
    frame.to_parquet(file, index=False)
    return file


@drawn(80)
@given(CUTS)
def test_parquet(table, tmp_path, cuts):
    pytest.importorskip("duckdb")
    file = tmp_path / "a.parquet"
    file.write_bytes(cut(table.read_bytes(), cuts))
    refused_or_used(lambda: read_table(file))
    refused_or_used(lambda: ParquetFiles(str(file)).ask("SELECT score, sex FROM rows"))
