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
    *("scores", "transport", "nearest", "blocks", "learning", "boosting", "classes", "anymodel"),
    *("audit", "sizes", "explain", "monitor", "threads"),
    *("parquet", "growth", "match_rows", "paths", "million"),
    *("fair_fit", "kept", "uneven", "promise", "limits"),
)
# Long: only when asked for.
RARE = (
    *("parquet", "growth", "match_rows", "paths", "million"),
    *("fair_fit", "kept", "uneven", "promise", "limits"),
)
HEAD = """# Benchmarks

Most figures are ratios of two measurements, because times depend on the machine. `make bench`
writes this page; do not edit it by hand. Each topic is a module in `benchmarks/`. Short topics
measure both things in one run. For the long topics (parquet, growth, match_rows, paths, million)
and for blocks, the two things may have been measured at different times on a busy machine, so they
compare CPU time. The studies of fair fits (fair_fit, kept, uneven, promise) keep a record of every
run, with the version of the code as a label in brackets ("before", "after", "floor" and so on).
Rows with a goal are of the newest of these versions.

Some ratios also depend on the processor. On 2026-11-20, on another machine, the code of 2026-11-18
took 0.64 (0.24 before) for the 18-weight curve with all rows matched once. For the gaps and the
fair matching of 10 million scores it took 4.4 to 4.8 (2.89 before), because `np.argsort` is faster
there; the code of 2026-11-20 took 4.3 to 6.0 in four runs.
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
        module = import_module(f"benchmarks.{topic}")
        for row in module.rows():
            print(row.markdown(), flush=True)
            table.append(row.markdown())
        where = f"{date.today()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        picture = getattr(module, "PICTURE", None)
        drawn = "" if picture is None else f"![{picture}]({topic}.svg)\n\n"
        body = "\n".join(table) + f"\n\n{drawn}Measured {where}.\n"
        sections[topic] = f"## {topic}\n\n{body}"
        write(sections, path)
    print(f"Written to {path}")


if __name__ == "__main__":
    main()
