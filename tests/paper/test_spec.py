import json

from hypothesis import given
from hypothesis import strategies as st
from paper.specs import RunSpec

TEXT = st.text("abµ_ ", max_size=6)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner),
    max_leaves=6,
)
SETTINGS = st.dictionaries(TEXT, VALUES, max_size=5)


def as_floats(value):
    if isinstance(value, dict):
        return {key: as_floats(item) for key, item in reversed(value.items())}
    if isinstance(value, list):
        return tuple(as_floats(item) for item in value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(SETTINGS)
def test_neither_the_order_of_keys_nor_the_kind_of_number_changes_a_run(settings):
    spec = RunSpec("german", "reg", 3, settings)
    assert RunSpec("german", "reg", 3, as_floats(settings)).digest == spec.digest


@given(SETTINGS, st.data())
def test_any_other_setting_is_another_run(settings, data):
    spec = RunSpec("german", "reg", 3, settings)
    key = data.draw(st.sampled_from([*settings, "new key"]))
    value = data.draw(VALUES)
    changed = RunSpec("german", "reg", 3, {**settings, key: value})
    # Python takes True for 1; a setting does not.
    if key not in settings or as_text(settings[key]) != as_text(value):
        assert changed.digest != spec.digest
    without = {name: item for name, item in settings.items() if name != key}
    if key in settings:
        assert RunSpec("german", "reg", 3, without).digest != spec.digest


def as_text(value):
    return json.dumps(as_floats(value), sort_keys=True)


@given(SETTINGS)
def test_dataset_method_and_seed_count_too(settings):
    specs = [("german", "reg", 0), ("adult", "reg", 0), ("german", "adv", 0), ("german", "reg", 1)]
    assert len({RunSpec(*spec, settings).digest for spec in specs}) == 4


def test_a_digest_is_what_it_always_was():
    # A change here would throw away all records that people have.
    spec = RunSpec("adult", "ftm", 4, {"weights": [0.5, 1], "label_weight": 0, "epochs": 40})
    assert spec.digest == "f23607f6bb"
