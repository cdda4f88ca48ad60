"""Check a built site: its links lead somewhere, it loads nothing else, and every page is near.

A page is near if it is at most `MOST_CLICKS` links away from the first one.
Run with ``python docs/check_site.py docs/_build/html``. Links to other sites are not followed.
Where a Chromium is installed, pages are also opened in it, and every request that leaves the folder
is an error.
"""

import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, as (element, attribute); a link is fetched when it is clicked.
LOADED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
}
MOST_CLICKS = 2
# Relations of a <link> that a browser does not fetch.
_NOT_FETCHED = {"index", "search", "next", "prev", "author", "copyright", "canonical"}


class Page(HTMLParser):
    """What a page names: its anchors, its links, and what is loaded with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the addresses of one element."""
        given = dict(attrs)
        for name in ("id", "name"):
            self.anchors.add(given.get(name) or "")
        for name, value in attrs:
            if name not in ("href", "src") or value is None:
                continue
            self.links.append(value)
            named = tag == "link" and given.get("rel") in _NOT_FETCHED
            if (tag, name) in LOADED and not named:
                self.loaded.append(value)


def pages_of(site: Path) -> list[Path]:
    """Return the pages of a site; what the theme keeps for itself is none."""
    return sorted(p for p in site.rglob("*.html") if "_static" not in p.relative_to(site).parts)


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with the pages of a folder, one sentence each.

    Parameters
    ----------
    site : Path
        The folder that the site was built into.
    """
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in pages_of(site)}
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in page.loaded:
            if urlsplit(address).scheme not in ("", "data"):
                yield f"{name} loads {address}"
        for address in set(page.links):
            split = urlsplit(address)
            if split.scheme or split.netloc:
                continue
            anchor = unquote(split.fragment)
            target = (path.parent / unquote(split.path)).resolve() if split.path else path
            if not target.is_file():
                yield f"{name} links to {address}, and there is no such file"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name} links to {address}, and there is no such place in that page"
    near = {start} if (start := site / "index.html") in pages else set()
    for _ in range(MOST_CLICKS):
        near |= {
            (path.parent / unquote(urlsplit(address).path)).resolve()
            for path in near & pages.keys()
            for address in pages[path].links
        }
    for path in pages.keys() - near if near else ():
        if path.name not in ("search.html", "genindex.html"):
            yield f"{path.relative_to(site)} is more than {MOST_CLICKS} clicks from the first page"


def requests_that_leave(site: Path, chromium: str) -> Iterator[str]:
    """Yield the requests to other places that opening the pages in a browser makes.

    Parameters
    ----------
    site : Path
        The folder that the site was built into.
    chromium : str
        The browser.
    """
    from playwright.sync_api import sync_playwright

    found: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        tab = context.new_page()

        def look(request: object) -> None:
            address: str = request.url  # type: ignore[attr-defined]
            if urlsplit(address).scheme not in ("file", "data", "blob"):
                found.append(f"{tab.url} requests {address}")

        tab.on("request", look)
        for path in pages_of(site):
            tab.goto(path.resolve().as_uri())
        # Searching must work from a disk, too.
        tab.goto(f"{(site / 'search.html').resolve().as_uri()}?q=coupling")
        tab.wait_for_selector("#search-results li", timeout=10_000)
        browser.close()
    yield from found


def main(site: Path) -> int:
    """Print what is wrong, and return 1 if something is."""
    found = list(problems(site))
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium:
        found += requests_that_leave(site, chromium)
    else:
        print("No Chromium here: the pages were read, and not opened in a browser.")
    for line in found:
        print(line)
    print(f"{len(pages_of(site))} pages, {len(found)} problems.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
