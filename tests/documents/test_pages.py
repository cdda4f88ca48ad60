"""Every block of code on a page is run, and prints what the page shows."""

from pathlib import Path

import pytest
from pages import DATA, ROOT, blocks, data, documents, run, strays

# Pages with data in them, the kinds of it, and the test that uses them.
READ_BY = {
    "docs/howto/gate.md": ({"yaml"}, "tests/documents/test_gate.py"),
    "docs/howto/own-study.md": ({"toml"}, "tests/paper/custom/test_documents.py"),
}
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


def test_code_after_a_directive_is_found():
    page = "```{toctree}\nstart\n```\n\n```python\nx = 1\n```\n"
    assert [block.body for block in blocks(page)] == ["x = 1\n"]


def test_a_command_that_looks_like_output_is_found():
    page = "```bash\necho 1\n```\n\n```text\n1\n```\n\nThen\n\n```text\nfairmatch train\n```\n"
    assert strays(page) == [11]
    assert strays("```\nfairmatch train\n```\n") == [1]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_fence_is_run_or_is_output_or_has_a_test_of_its_own(path):
    text = path.read_text(encoding="utf-8")
    assert strays(text) == []
    held = {language for language in DATA if data(text, language)}
    assert held <= READ_BY.get(str(path.relative_to(ROOT)), (set(), ""))[0]


@pytest.mark.parametrize("page", READ_BY)
def test_the_test_that_reads_a_page_is_there(page):
    assert Path(page).name in (ROOT / READ_BY[page][1]).read_text(encoding="utf-8")
