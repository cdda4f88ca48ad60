"""The published JSON Schemas are those of the facts."""

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest

from fairmatch import audit, compare_models, find_alternatives

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        from schemas import write_schemas
    finally:
        sys.path.pop(0)
    files = write_schemas(tmp_path_factory.mktemp("schemas"))
    return {file.name: json.loads(file.read_text("utf-8")) for file in files}


def test_what_is_written_follows_the_published_schema(schemas):
    scores, group, labels = [0.9, 0.2, 0.6, 0.7] * 20, ["a", "a", "b", "b"] * 20, [1, 0] * 40
    models = {"one": scores, "other": scores[::-1]}
    named = {"sensitive_features": group, "y_true": labels}
    for facts in (
        audit(scores, n_resamples=100, **named),
        compare_models(models, n_resamples=100, **named),
        find_alternatives(models, **named),
    ):
        schema = schemas[f"{facts.SCHEMA}.schema.json"]
        jsonschema.Draft202012Validator.check_schema(schema)
        content = json.loads(facts.to_json())
        jsonschema.validate(content, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**content, "schema_version": "none"}, schema)
    assert len(schemas) == 3


def test_the_page_links_every_schema(schemas):
    page = (ROOT / "docs" / "reference" / "audit-json.md").read_text("utf-8")
    assert all(f"../schemas/{name}" in page for name in schemas)


def test_the_page_names_every_field_of_every_part(schemas):
    page = (ROOT / "docs" / "reference" / "audit-json.md").read_text("utf-8")
    own, parts = page.split("## Its parts")
    cells = re.findall(r"^\| (`.*?) \|", own, flags=re.MULTILINE)
    fields = re.findall(r"(?<!: )`(\w+)`", " ".join(cells))
    head = {"schema", "schema_version"}
    assert set(fields) == set(schemas["fairmatch.Audit.schema.json"]["properties"]) - head
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", parts, flags=re.MULTILINE))
    written = {name: re.findall(r"`(\w+)`", row) for name, row in rows.items()}
    expected = {}
    for name, schema in schemas.items():
        for part, kind in {name.split(".")[1]: schema, **schema["$defs"]}.items():
            expected[part] = [own for own in kind["properties"] if own not in head]
    del expected["Audit"]
    assert written == expected
