"""The report in a real browser: it draws, follows, keeps quiet, and executes nothing."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest
from hostiletable import HOSTILE_COLUMN, make_table

from fairmatch import audit
from fairmatch.report import write_filing, write_report

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install 'fairmatch[dev]'"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip(
        "no chromium is installed: apt-get install chromium, or another package of it",
        allow_module_level=True,
    )
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(hostile, curve, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(hostile, path, curve=curve)


class Opened:
    """A page, with what it complained of and what it asked for."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", self._route)
        self.page.goto(path.as_uri())

    def open_all(self):
        self.page.get_by_role("button", name="Open everything").click()
        return self

    def _route(self, route):
        self.requests.append(route.request.url)
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            route.abort()


@pytest.fixture(scope="module")
def opened(browser, report):
    opened = Opened(browser, report, viewport={"width": 1200, "height": 900}).open_all()
    yield opened
    opened.context.close()


@pytest.fixture
def page(browser, report):
    """A fresh page, so that every test starts with the same list; it ends without complaints."""
    opened = Opened(browser, report, viewport={"width": 1200, "height": 900}).open_all()
    yield opened.page
    assert opened.complaints == []
    opened.context.close()


def listed(page, column=0):
    """Texts of a column, in one call: a call per cell would take seconds."""
    return page.locator("#explorer .people tbody tr").evaluate_all(
        "(rows, k) => rows.map((row) => row.querySelectorAll('th, td')[k].innerText)", column
    )


def control(page, name):
    return page.locator(f"#explorer form [name={name}]")


def test_every_chart_is_drawn_with_marks(opened):
    charts = opened.page.locator("svg.chart").all()
    assert len(charts) >= 15
    for chart in charts:
        assert chart.locator("path, circle, rect").count() > 0
        assert chart.bounding_box()["width"] > 200


@pytest.mark.parametrize("width", [400, 1280])
def test_no_text_leaves_its_chart_or_covers_another(browser, report, width):
    opened = Opened(browser, report, viewport={"width": width, "height": 900}).open_all()
    found = opened.page.evaluate("""() => {
      const said = [];
      for (const chart of document.querySelectorAll("svg.chart")) {
        const box = chart.getBoundingClientRect();
        const place = (text) => [text.textContent, text.getBoundingClientRect()];
        const texts = [...chart.querySelectorAll("text")].map(place);
        for (const [k, [words, own]] of texts.entries()) {
          if (own.left < box.left - 3 || own.right > box.right + 3) said.push(["outside", words]);
          for (const [others, other] of texts.slice(k + 1)) {
            const wide = Math.min(own.right, other.right) - Math.max(own.left, other.left);
            const tall = Math.min(own.bottom, other.bottom) - Math.max(own.top, other.top);
            if (wide > 3 && tall > 4) said.push([words, others]);
          }
        }
      }
      return said;
    }""")
    opened.context.close()
    assert found == []


def test_the_columns_of_a_pair_are_as_dark_as_other_text(opened):
    table = opened.page.locator("#explorer .person table.pair")
    assert table.evaluate("(table) => getComputedStyle(table).opacity") == "1"


def test_hostile_names_and_values_are_text_and_execute_nothing(opened):
    page = opened.page
    assert page.evaluate("window.hacked") is None
    person = page.locator("#explorer .person")
    assert HOSTILE_COLUMN in person.inner_text()
    assert page.locator("main img, main i, main b, main script").count() == 0


def test_the_policy_stops_scripts_that_are_not_the_pages_own(browser, report, tmp_path):
    changed = tmp_path / "changed.html"
    text = report.read_text("utf-8")
    changed.write_text(text.replace("</main>", "<script>window.hacked=1</script></main>"), "utf-8")
    opened = Opened(browser, changed)
    assert opened.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in text for text in opened.complaints)
    opened.context.close()


def test_the_explorer_filters_by_text_group_and_flips(page):
    status = page.locator("#explorer .status")
    assert status.inner_text().startswith("240 of 240 people")
    control(page, "text").fill("person-17")
    assert (
        listed(page) == ["<i>17</i> person-17", *listed(page)[1:]] or "person-17" in listed(page)[0]
    )
    assert all("person-17" in name for name in listed(page))
    control(page, "text").fill("")
    control(page, "group").select_option("0")
    assert status.inner_text().startswith("96 of 240 people")
    assert page.locator("#explorer thead [data-key=group]").count() == 0  # all of one group
    control(page, "group").select_option("")
    control(page, "flips").check()
    assert all("flip" in text for text in listed(page, 3))
    assert not status.inner_text().startswith("240 of")
    control(page, "text").fill("nobody has this value")
    assert status.inner_text().startswith("0 of 240 people")


def test_the_explorer_follows_a_click_to_the_counterpart_and_back(page, hostile):
    people = hostile.audits[0].individuals
    row = page.locator("#explorer .people tbody tr").nth(3)
    name = row.locator("th").inner_text()
    row.locator("button").click()
    person = page.locator("#explorer .person")
    assert person.locator("h3").inner_text() == f"Person {name}"
    at = people.ids.index(name)
    pair = people.counterparts(at, matching="nearest_fair")[0]
    pairs = people.pairs["nearest_fair"]
    mate = pairs.first[pair] if people.group[at] else pairs.second[pair]
    assert f"Score gap {pairs.score_gap[pair]:.3f}" in person.inner_text()
    assert person.locator("tr.differs").count() == len(
        people.differences(pair, matching="nearest_fair")
    )
    person.get_by_label("Only these").check()
    assert person.locator("tbody tr").count() == len(
        people.differences(pair, matching="nearest_fair")
    )
    person.locator(".follow").click()
    assert person.locator("h3").inner_text() == f"Person {people.ids[mate]}"
    person.locator(".follow").click()
    assert person.locator("h3").inner_text() == f"Person {name}"


def test_sorting_by_keyboard(page):
    def numbers(column):
        return [float(text) for text in listed(page, column)]

    gaps = page.get_by_role("button", name="Score gap")
    gaps.focus()
    page.keyboard.press("Enter")
    assert numbers(4) == sorted(numbers(4), reverse=True)
    heading = page.locator("#explorer .people thead th", has_text="Score gap")
    assert heading.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")  # the focus stayed
    assert numbers(4) == sorted(numbers(4))
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert numbers(5) == sorted(numbers(5), reverse=True)
    first = numbers(5)
    page.get_by_role("button", name="Next").focus()
    page.keyboard.press("Enter")
    assert max(numbers(5)) <= min(first)


def test_another_matching_and_another_model(page):
    person = page.locator("#explorer .person")
    control(page, "matching").select_option("marginal")
    assert "nearest matching" in person.inner_text()
    before = person.inner_text()
    control(page, "model").select_option("1")
    assert person.inner_text() != before


def test_a_flip_stands_only_beside_a_counterpart_who_is_decided_otherwise(page):
    data = page.evaluate("JSON.parse(document.getElementById('people-data').textContent)")
    table, model = data["tables"][0], data["models"][0]
    decided = dict(zip(table["ids"], model["selected"], strict=True))
    for only in (False, True):
        control(page, "flips").set_checked(only)
        for name, mate in zip(listed(page), listed(page, 3), strict=True):
            other = mate.removesuffix("flip").strip()
            assert mate.endswith("flip") == (decided[name] != decided[other])


def test_the_nearest_person_is_offered_and_is_the_nearest(page, hostile):
    people = hostile.audits[0].individuals
    control(page, "matching").select_option("near")
    near = people.near
    for row in page.locator("#explorer .people tbody tr").all()[:5]:
        name, mate = row.locator("th").inner_text(), row.locator("td").nth(2).inner_text()
        k = near.first.index(people.ids.index(name))
        assert mate.removesuffix("flip").strip() == people.ids[near.second[k]]
        assert row.locator("td").last.inner_text() == f"{near.distance[k]:.2f}"


def test_the_whole_table_of_people_is_seen_at_1280_pixels(browser, report):
    opened = Opened(browser, report, viewport={"width": 1280, "height": 900}).open_all()
    box = "#explorer .people .scroll"
    wide, seen = opened.page.eval_on_selector(box, "e => [e.scrollWidth, e.clientWidth]")
    assert wide <= seen
    heading = opened.page.locator("#explorer thead th", has_text="Distance").bounding_box()
    place = opened.page.locator(box).bounding_box()
    assert heading["x"] + heading["width"] <= place["x"] + place["width"] + 1
    opened.context.close()


def test_the_first_screen_has_the_answer_and_the_rest_is_folded(browser, report):
    opened = Opened(browser, report, viewport={"width": 1280, "height": 800})
    page = opened.page
    assert page.locator("details[open]:not(#matching)").count() == 0
    assert page.locator("#figure-1-numbers tbody tr").first.bounding_box()["y"] < 800
    assert page.locator("#summary .finding").first.is_visible()
    # By keyboard alone: from the skip link to a part, which Enter opens.
    part = page.locator("#gaps > summary")
    part.focus()
    page.keyboard.press("Enter")
    assert page.locator("#gaps[open]").count() == 1
    assert page.locator("#gaps svg.chart").first.bounding_box()["width"] > 300
    opened.context.close()


def test_an_address_inside_a_closed_part_opens_it(browser, report):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{report.as_uri()}#provenance")
    assert page.locator("#provenance[open]").count() == 1
    context.close()


@pytest.fixture(scope="module")
def many_groups(browser, tmp_path_factory):
    """The page of three hostile groups of two attributes, and what it complained of."""
    X, y, group, scores = make_table(360, seed=2)
    attributes = pd.DataFrame(
        {"<b>sex</b>": group, "age_class": np.where(np.arange(360) % 3 == 0, "<i>old</i>", "young")}
    )
    found = audit(
        scores, sensitive_features=attributes, X=X, y_true=y, n_resamples=100, n_subsets=20
    )
    path = write_report(found, tmp_path_factory.mktemp("report") / "many.html")
    opened = Opened(browser, path, viewport={"width": 1280, "height": 900}).open_all()
    yield opened, found
    assert opened.complaints == []
    opened.context.close()


def test_many_groups_by_attribute_and_by_combination(many_groups):
    opened, found = many_groups
    page = opened.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("main b, main i, main img").count() == 0
    text = page.locator("main").text_content()
    for group in found.groups:
        assert group.label in text
    assert "by <b>sex</b>" in text
    # Every group but the largest has a chart of its scores beside it.
    assert page.locator("#scores svg.chart").count() == len(found.groups) - 1


def test_two_of_many_groups_are_chosen_by_keyboard(many_groups):
    opened, found = many_groups
    page = opened.page
    labels = [group.label for group in found.groups]
    first = control(page, "group")
    first.focus()
    reference = labels.index(found.reference)
    first.select_option(str(reference))
    others = control(page, "other").locator("option").all_inner_texts()
    assert sorted(others) == sorted(set(labels) - {found.reference})
    page.keyboard.press("Tab")  # to the second choice
    page.keyboard.press("ArrowDown")
    chosen = int(control(page, "other").input_value())
    ids, group = found.individuals.ids, found.individuals.group
    for name, mate in zip(listed(page), listed(page, 2), strict=True):
        assert group[ids.index(name)] == reference
        assert group[ids.index(mate.removesuffix("flip").strip())] == chosen


@pytest.mark.parametrize("matching", ["nearest_fair", "near", "fair"])
def test_any_two_groups_can_be_chosen(many_groups, matching):
    opened, found = many_groups
    page = opened.page
    labels = [group.label for group in found.groups]
    control(page, "matching").select_option(matching)
    ids, group = found.individuals.ids, found.individuals.group
    for one in range(len(labels)):
        control(page, "group").select_option(str(one))
        others = control(page, "other").locator("option").all_inner_texts()
        assert sorted(others) == sorted(set(labels) - {labels[one]})
        for label in others:
            other = labels.index(label)
            control(page, "other").select_option(str(other))
            shown = [(ids.index(n), m) for n, m in zip(listed(page), listed(page, 2), strict=True)]
            assert shown
            assert {group[person] for person, _ in shown} == {one}
            mates = {ids.index(mate.removesuffix("flip").strip()) for _, mate in shown}
            assert {group[mate] for mate in mates} == {other}
            status = page.locator("#explorer .status").inner_text()
            both_smaller = found.reference not in (labels[one], label)
            assert ("neither of which is the largest" in status) == both_smaller
    control(page, "matching").select_option("nearest_fair")
    control(page, "group").select_option("0")


def test_a_person_is_chosen_and_followed_by_keyboard(many_groups):
    page = many_groups[0].page
    pick = page.locator("#explorer .people .pick").nth(1)
    name = pick.inner_text()
    pick.focus()
    page.keyboard.press("Enter")
    person = page.locator("#explorer .person")
    assert person.locator("h3").inner_text() == f"Person {name}"
    focused = page.locator(":focus")
    assert focused.evaluate("e => e.matches('.pick[aria-current]')")  # and not lost to the page
    assert focused.inner_text() == name
    person.locator(".follow").focus()
    page.keyboard.press("Space")
    assert person.locator("h3").inner_text() != f"Person {name}"
    assert person.evaluate("e => document.activeElement === e")


def test_tab_reaches_the_skip_link_first_and_focus_is_seen(page):
    page.reload()
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.inner_text() == "Skip to the findings"
    assert focused.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"


def test_every_control_has_a_name_and_every_id_is_used_once(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("select, input")]
            .filter((e) => !e.labels.length && !e.ariaLabel).length"""
    )
    assert unnamed == 0
    ids = page.evaluate("() => [...document.querySelectorAll('main [id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 360, "dark")],
)
def test_light_dark_and_phone(browser, report, tmp_path, name, width, scheme):
    view = {"width": width, "height": 800}
    opened = Opened(browser, report, viewport=view, color_scheme=scheme).open_all()
    page = opened.page
    picture = tmp_path / f"{name}.png"
    page.screenshot(path=picture)
    assert picture.stat().st_size > 10_000
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Text of the page and of a chart stands out from the ground in either scheme.
    ground, text, label = page.evaluate(
        """() => {
            const light = (colour) => {
                const [r, g, b] = colour.match(/[0-9.]+/g).map(Number).map((v) => {
                    const c = v / 255;
                    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
                });
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const figure = document.querySelector("figure");
            return [
                light(getComputedStyle(figure).backgroundColor),
                light(getComputedStyle(figure).color),
                light(getComputedStyle(document.querySelector("svg.chart text.tick")).fill),
            ];
        }"""
    )
    for colour in (text, label):
        low, high = sorted((ground, colour))
        assert (high + 0.05) / (low + 0.05) > 4.5
    # A chart is as wide as its place and no wider.
    wider = page.evaluate(
        """() => [...document.querySelectorAll("svg.chart")].filter((e) =>
            e.getBoundingClientRect().width > e.parentElement.getBoundingClientRect().width + 1
        ).length"""
    )
    assert wider == 0
    opened.context.close()


def test_what_is_open_is_printed_and_nobodys_row_unless_it_was_opened(browser, report):
    opened = Opened(browser, report, color_scheme="dark")
    opened.page.emulate_media(media="print")
    assert not opened.page.locator("#explorer, #gaps").first.is_visible()
    assert opened.page.locator("#figure-1-numbers").is_visible()
    assert opened.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    opened.context.close()


def test_a_filing_is_a_pdf_of_a_few_pages(hostile, tmp_path):
    file = write_filing(hostile, tmp_path / "filing.pdf", fields={"auditor": "A <b>Doe</b>"})
    content = file.read_bytes()
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", content)) <= 5


def test_scores_alone_make_a_page_too(browser, plain, tmp_path):
    opened = Opened(browser, write_report(plain, tmp_path / "r.html", individuals=False))
    assert opened.complaints == []
    assert opened.page.locator("#explorer").count() == 0
    opened.context.close()


def test_nothing_was_complained_of_and_nothing_left_the_page(opened):
    assert opened.complaints == []
    assert opened.requests
    assert all(url.startswith(("file:", "data:")) for url in opened.requests)
