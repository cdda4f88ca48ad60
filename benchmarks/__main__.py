"""Run the benchmarks and write their ratios to benchmarks/README.md.

python -m benchmarks            all of them
python -m benchmarks scores     only some of them: see TOPICS
"""

import os
import platform
import sys
from datetime import date
from importlib import import_module
from pathlib import Path

TOPICS = (
    *("scores", "transport", "nearest", "blocks", "learning", "boosting", "anymodel", "audit"),
    "million",
)
RARE = ("million",)  # hours: only when asked for
HEAD = """# Benchmarks

Ratios of two things measured in the same run, because machines differ and are noisy. Written by
`make bench`; do not edit by hand. Each topic stands in a file of its own, with its records below.
"""


def write(sections, path):
    found = [sections[topic] for topic in TOPICS if topic in sections]
    path.write_text("\n".join([HEAD, *found]))


def read(path):
    """Sections that are there already, by topic: a partial run replaces only its own."""
    if not path.exists():
        return {}
    _, *sections = path.read_text().split("\n## ")
    return {s.split("\n")[0].strip(): "## " + s.rstrip() + "\n" for s in sections}


def main():
    asked = sys.argv[1:] or [topic for topic in TOPICS if topic not in RARE]
    path = Path(__file__).parent / "README.md"
    sections = read(path)
    for topic in asked:
        table = ["| what | ratio | goal | reached |", "|---|---|---|---|"]
        for row in import_module(f"benchmarks.{topic}").rows():
            print(row.markdown(), flush=True)
            table.append(row.markdown())
        where = f"{date.today()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        sections[topic] = f"## {topic}\n\n" + "\n".join(table) + f"\n\nMeasured {where}.\n"
        write(sections, path)
    print(f"Written to {path}")


if __name__ == "__main__":
    main()
