"""The JSON Schemas of what `to_json` writes, as files of the site."""

import json
from pathlib import Path
from typing import Any

from fairmatch.auditing.facts import Alternatives, Audit, Comparison


def write_schemas(folder: Path) -> list[Path]:
    """Write one schema per kind of facts, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for kind in (Audit, Comparison, Alternatives):
        file = folder / f"{kind.SCHEMA}.schema.json"
        file.write_text(json.dumps(kind.json_schema(), indent=1) + "\n", encoding="utf-8")
        files.append(file)
    return files


def setup(app: Any) -> dict[str, bool]:
    """Write the schemas beside the pages."""
    app.connect("build-finished", lambda app, error: write_schemas(Path(app.outdir) / "schemas"))
    return {"parallel_read_safe": True}
