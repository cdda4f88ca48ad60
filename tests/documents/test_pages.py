"""Every block of code on a page is run, and prints what the page shows."""

import pytest
from pages import ROOT, RUN, blocks, documents, run

PAGES = [path for path in documents() if blocks(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_code_of_a_page_does_what_it_shows(path, tmp_path, monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.chdir(tmp_path)
    for block, printed in run(blocks(path.read_text(encoding="utf-8")), tmp_path):
        if block.shown is not None:
            assert printed.strip() == block.shown.strip(), block


def test_blocks_are_found_with_their_output():
    page = "\n".join(
        [
            "<!-- hidden:",
            "x = 1",
            "-->",
            "```python",
            "print(x)",
            "```",
            "",
            "```text",
            "1",
            "```",
            "<!-- not run: it takes an hour -->",
            "```bash",
            "sleep 3600",
            "```",
            "```toml",
            "a = 1",
            "```",
        ]
    )
    hidden, shown, left = blocks(page)
    assert (hidden.body, shown.shown, left.reason) == ("x = 1\n", "1\n", "it takes an hour")


def test_a_page_that_shows_something_else_is_found(tmp_path):
    (block,) = blocks("```python\nprint(2)\n```\n\n```text\n3\n```\n")
    ((_, printed),) = run([block], tmp_path)
    assert printed.strip() != block.shown.strip()


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_fence_says_what_it_holds(path):
    known = {*RUN, "text", "toml", "yaml", "json", "", "md"}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("```") and line.strip("`") and not line.strip("`").startswith("{"):
            assert line.strip("`").strip() in known
