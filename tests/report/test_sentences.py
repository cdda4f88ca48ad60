"""Every sentence of the page: where it is said, and where it must not be."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from told import made, page_text

import fairmatch.report
from fairmatch.report.figures import subset_figure
from fairmatch.report.wording import sentences

# The audits of `told.made` on whose pages a sentence stands, by how it begins. It stands on none
# of the others.
SAID = {
    "few tiny": ("Groups with too few people for a statement are left out.",),
    "three crossed tiny": (
        "for all pairs of groups at once",
        "Any two groups can be chosen.",
        ", the largest; a figure names the other",
        "The largest gap over pairs of groups",
        "; where two other groups lie farthest apart,",
        ", or nobody of any other group,",
        "The intervals of one measure hold for all",
        "the largest gap between a group's mean score",
    ),
    "crossed unknown": ("; no difference at all cannot be ruled",),
    "bare": (
        "at the same rank of their groups get",
        "on average; without their features nothing is said",
        "Without features no subsets were searched, so a",
        "People at the same rank of their groups'",
    ),
    "all but bare few same": (
        "so that their mean score gap",
        "between the nearest possible matching (0) and a",
        "How near can matched people be?",
        "Each curve begins at the least mean score",
        "The dot is the matching that is shown:",
    ),
    "crossed unknown sampled tiny planted": ("adds most to what sets them farther apart",),
    "all but bare three crossed few tiny": ("the gap between the groups' mean scores",),
    "decided nobody deciles file predicted sampled survey three tiny": (
        "of them with people enough for a statement",
        "its gap between mean scores is not",
    ),
    "all but bare crossed unknown few same planted": ("certain to differ from 0 on fresh rows.",),
    "tiny": (
        "Nothing else is stated about so few people:",
        "because every category is filed.",
        "Each group with enough people for a statement is matched with",
        "too few people for a statement (",
        "people of a group were matched, drawn at",
        "Categories of less than 2% of the people",
    ),
    "same": (
        "The nearest and a random matching of the",
        "No subset is listed: each has fewer than",
        "people of two groups that a statement needs,",
    ),
    "planted": (
        "; the gap between mean scores is surest",
        ", an interval on fresh rows",
        "that allows for all that are listed.",
        ". The chart shows the first",
    ),
    "alternatives": (
        "Described below, besides 'one' (accuracy",
        "Every model that was tried, compared with the baseline",
        "A search that finds nothing does not prove",
        "A model counts as accurate as the baseline",
        ", and its gap counts as smaller if",
        "“No” means that one of the two",
        ", the largest over pairs of groups. Newly",
        "does not select and the model does.",
    ),
    "all": (
        "Definitions of equal treatment, side by side, with",
        "They can disagree, and in general not all",
        "; it does not say why it is",
        "Each measure's interval holds with",
        "confidence by itself: among several measures one or",
        "0 is alike. A bar that reaches 0",
        "The share of each group's people in every",
    ),
    "all but real predicted": (
        "Rates and impact ratios by category",
        "In the shape of New York's Local Law",
        "How the scores of every group are spread,",
        "ratio to the most selected",
        "A dot is the share of people",
        "The tables follow the vocabulary of",
        "ratio is a rate over that of the category with the highest",
        "That law sets no threshold. The four-fifths rule",
        "as evidence of adverse impact unless the difference",
    ),
    "all but few": (
        "Who is matched with whom",
        "People of two groups matched by their scores,",
        "Score gaps of matched people",
        "Intervals take the pairs as given.",
        "The score gap between two matched people, over",
    ),
    "all but bare": (
        "Gaps in parts of the people",
        "Where a fair average may hide an unfair",
        "Subsets with the surest gaps",
    ),
    "two three low compared alternatives": (
        "How well it does in each group",
        "Accuracy, error rates and calibration against the recorded",
        "Labels are records of past decisions and outcomes",
        "Does a score mean the same in every",
        "Accuracy is the share of decisions that agree",
        "Where a dot lies on the diagonal, people",
        "Mean distance from the diagonal:",
    ),
    "file": (
        "How the table was read",
        "The role of every column, and what a",
    ),
    "compared": (
        "Accuracy against the gap, one point per strength",
        "The farther left, the smaller the gap; the",
        "The points are estimates without intervals, on the",
        "named as favoured, a flip is called",
    ),
    "real predicted": (
        "How the predictions of every group are spread.",
        "Scores are predictions in units of the target.",
        "In units of the target",
        "As a share of the people",
        "In standard deviations of the",
        "Mean prediction of each group",
        "A dot is the mean of the predictions",
    ),
    "predicted": (
        "The same people under each model.",
        "The order of people against",
        "How far the order of people within a",
    ),
    "compared alternatives": (
        "The same people under each model, and whose",
        "and the changed decisions do.",
        "Decisions that differ from those of",
        ", as shares of each group, and how",
    ),
    "all but bare few real": ("Distance is taken over all columns given, numbers",),
    "all but bare few": (
        "Every model stands for a matching of people",
        "Whoever has the file can read them. The",
        "read them. The same report can be written without any",
        "This file holds the rows of",
        ", in the explorer: their",
        "Identifiers are numbers of rows; the first row of the table is",
        "0 means as near to each other as",
        "A large score gap between people who are",
        "How much each column adds to the squared",
        "How far apart are people matched by their",
        "Is somebody near scored alike?",
        "Near is the distance within which nine in",
        ". Alike is a score gap of at most",
        "Counterparts are matched, and a counterpart need not be the",
        "can be chosen instead. People who are matched by",
        "near: squared distance up to",
        "alike: score gap up to",
        "Each of many random cuts through the table",
        "Small subsets have gaps by chance alone. The",
    ),
    "all but bare crossed unknown few same": (
        "Subsets were chosen on some of the rows",
        "; the interval leaves 0 out in",
    ),
    "predicted compared alternatives": (
        "A smaller gap does not show by itself",
        ": share at or below each",
        "distance of people matched by their scores (0",
        "listed subsets with a sure gap",
        "All numbers side by side",
        "Estimates without their intervals, which stand in the",
        "(1 = the same order).",
    ),
    "survey": (
        "Shares, means and gaps are weighted; numbers of",
        "worth people of equal weight",
    ),
    "bare few": ("This file holds counts, averages and intervals over",),
    # Of categories of few people nothing is shown where no individual is.
    "three crossed": (
        "the people of each group are matched with",
        "Each group is matched with",
    ),
    "few": (
        "; no gap is stated, because:",
        "The page is without individuals, so no rates are shown of categories with fewer than",
        ", nor ratios to one of them.",
    ),
    "two": (
        "Left out of people's rows:",
        ". Figures about many people still name them.",
    ),
    "sampled tiny": (
        "The explorer lists a random sample:",
        "the nearest person of those drawn. The nearest person can be chosen",
        ", both taken among those who were drawn",
    ),
    "crossed": (
        "By attribute and by combination",
        "The largest gap over the pairs of groups",
        "The groups of one attribute at a time;",
    ),
    "unknown": (
        "shown, and compared with nobody",
        "of unknown category, scored and left out.",
    ),
    "three crossed unknown tiny": ("the group named above the chart",),
    "decided deciles": ("s that take few values are drawn without",),
    "all but real decided deciles predicted": (
        "The dashed line is the threshold (",
        "). Where many people stand close to it,",
    ),
    "all but bare few sampled tiny": ("Everybody in these groups was matched.",),
    "all but bare three crossed few sampled tiny": ("there is somebody in group",),
    "sampled": (
        "of the two groups was matched.",
        "of those drawn of group a there is somebody among those drawn of group",
    ),
    "all but real few predicted": ("A flip is a pair in which one",),
    "all but bare crossed unknown few": (
        "subsets were looked at on",
        "rows; the gaps shown are of",
    ),
    "all but bare three crossed few same tiny planted": ("kept nobody of one group and",),
    "all but real decided predicted": (
        "The scoring rate is the share of people",
        "the median of the whole sample.",
    ),
}
# Sentences with a test of their own, and texts that are no sentences.
ELSEWHERE = (
    "The row of a category of 1 person is",  # test_figures, to the next but one
    "among categories of at least 2% of the people",
    "the highest rate is that of fewer than",
    "Counterparts are matched by their scores, which",  # test_report
    "means that are not stated",  # test_predictions
    "none of these has a gap between mean",  # test_summary
    "The distance between people who are matched",  # below
    "How far apart are people at the same",  # test_figures, to the next but one
    "A bar is the range that tied scores",
    "Columns that add less are only in the",
    "The models were audited on different people, so",
    "largest gap of two groups",  # below
    "without the given factors, and",  # auditing/test_conditional, to the next but eleven
    "the columns and weights listed below",
    "Among people with the same given factors",
    "The gap within strata: people of both",
    "The adjusted difference is the mean of",
    "A small gap within strata does not clear",
    "With and without the given factors",
    "The difference is that of the group minus",
    "intervals of adjusted differences and odds ratios",
    "Compared is the share of each group",
    "How much each column counts in the distance",
    "The weight of a column in the squared",
    ", numbers scaled to [0, 1] and two",  # a sentence of which the template holds two parts
    ". Other columns or scales give other",
    "There is no audit to report",  # errors, axes and headings
    ". Write one report for each.",
    "The report needs the report extra",
    "Pass a table of FairnessPath.curve.",
    "; style-src",
    "0 = as near as possible, 1 = as random",
    "score gap of a pair",
    "share of the group's people",
    "impact ratio of selection rates",
    "The dashed line is the",
    "; the bar is its",
    "The gap is that of",
    "each group with enough people for a statement",  # test_summary
    "difference of the mean predictions",  # words of gaps, as in the registry of measures
    "mean difference of the predictions for people",
    "Distributions of predictions, largest distance",
    "largest difference of the shares of people predicted at most some number",
    ", in standard deviations of the",
    "difference of the shares selected among people with a",
)
FOLDER = Path(fairmatch.report.__file__).parent
SPEAKING = [FOLDER / f"{name}.py" for name in ("wording", "figures", "page", "explorer")]
SPEAKING += [FOLDER / "assets" / name for name in ("sections.html.j2", "figures.txt.j2")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("told")


@pytest.fixture(scope="module")
def audits(folder):
    return made(folder)


@pytest.fixture(scope="module")
def pages(audits, folder):
    return {name: page_text(found, name, folder) for name, found in audits.items()}


def expected(names, everybody):
    """Names of the audits that a line of the table stands for."""
    if names.startswith("all"):
        return set(everybody) - set(names.removeprefix("all").removeprefix(" but").split())
    return set(names.split())


@pytest.mark.parametrize(
    ("names", "sentence"), [(names, s) for names, said in SAID.items() for s in said]
)
def test_a_sentence_is_said_where_it_is_true_and_nowhere_else(pages, names, sentence):
    assert {name for name, text in pages.items() if sentence in text} == expected(names, pages)


def test_what_a_search_found_is_said_first(pages):
    told = pages["alternatives"]
    places = [
        told.index(words)
        for words in (
            "What was found",
            "alternative was found: of 1 model tried",
            "Described below, besides 'one' (accuracy",
            "Of 160 people",
        )
    ]
    assert places == sorted(places)


def written(module):
    """Texts of a module or a template of five words or more, but for docstrings."""
    if module.suffix == ".j2":
        texts = re.split(r"[\"\n]|<.*?>|{{.*?}}|{%.*?%}|{#.*?#}", module.read_text("utf-8"))
        plain = (t for t in texts if not t.startswith("{%") and " | " not in t)
        yield from (t for t in plain if len(t.split()) >= 5)
        return
    tree = ast.parse(module.read_text("utf-8"))
    with_docstrings = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, with_docstrings) and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            if len(words) >= 5 and id(node) not in docstrings:
                yield " ".join(words)


@pytest.mark.parametrize("module", SPEAKING, ids=lambda module: module.stem)
def test_no_sentence_is_missing_here(module):
    known = [*ELSEWHERE, *(sentence for said in SAID.values() for sentence in said)]
    assert [text for text in written(module) if not any(k in text for k in known)] == []


@pytest.mark.parametrize(
    "words",
    [
        "treated alike",  # of scores .3 and .1, which are at the same rank
        "treats alike",
        "scores alike",
        "The nearest people are",  # of the partners in a matching
        "is not missing",
        "tied scores leave it open",
        "_",  # column names are written as people write them
    ],
)
def test_what_a_hostile_reader_found_is_not_said(pages, words):
    for name in ("two", "three", "deciles", "low", "planted"):
        told, _, _ = pages[name].partition("What is not said, and why")
        assert words not in told


def test_a_matching_that_could_not_be_proven_is_not_placed(audits):
    found = audits["two"]
    (matching,) = found.matchings
    second = sentences(replace(found, matchings=(replace(matching, nearest_fair=None),)))[1]
    assert second.startswith("The distance between people who are matched by their scores is not")


def test_the_gap_over_everybody_is_called_the_largest_of_many(audits):
    planted, three = audits["planted"], audits["three"]
    assert "is the gap over everybody" in " ".join(subset_figure([planted]).reading)
    with_one = replace(three, subsets=planted.subsets)
    said = " ".join(subset_figure([with_one]).reading)
    assert "The dashed line is the largest gap of two groups over everybody." in said
