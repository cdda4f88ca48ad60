"""The example of docs/howto/own-study.md does what the page says."""

import re
import sys
from pathlib import Path

from smallruns import loans

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "own-study.md"


def test_the_example_runs_as_it_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    text = PAGE.read_text(encoding="utf-8")
    (study,) = re.findall(r"```toml\n(.*?)```", text, flags=re.S)
    module, script = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    (tmp_path / "study.toml").write_text(study, encoding="utf-8")
    (tmp_path / "shifting.py").write_text(module, encoding="utf-8")
    loans(400).to_csv(tmp_path / "loans.csv", index=False)
    names = {}
    exec(compile(script, "example", "exec"), names)
    assert names["failures"] == []
    assert names["study"].datasets == ("loans",)
    found = {record.spec.method: record.curve for record in names["store"]}
    assert set(found) == {"unfair", "forest", "shifted"}
    assert found["shifted"]["weight"] == [0.0, 0.5, 1.0]
    gaps = found["shifted"]["mean_parity_gap"]
    assert gaps == sorted(gaps, reverse=True), "from the most accurate to the fairest"
    assert all(curve["accuracy"][0] > 0.55 for curve in found.values())
    assert "shifted" in capsys.readouterr().out
