"""The command ``fairmatch audit`` on tables in files."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from audited import planted_model
from rich.console import Console

import fairmatch
from fairmatch.auditing.facts import Audit, Comparison
from fairmatch.cli.main import main

QUICK = ["--resamples", "100", "--sample", "60"]


@pytest.fixture
def table(tmp_path):
    scores, group, X = planted_model(1200)  # enough for 30 of each group in half the planted subset
    X["score"] = scores
    X["fair"] = (0.5 * scores + 0.2).round(3)
    X["sex"] = group
    X["repaid"] = np.where(
        scores + np.random.default_rng(0).normal(0, 0.1, 1200) > 0.5, "yes", "no"
    )
    X["name"] = [f"person {k}" for k in range(1200)]
    path = tmp_path / "people.csv"
    X.to_csv(path, index=False)
    return path


@pytest.fixture
def run(table, capsys):
    def run(*arguments, tables=None, score=("--score", "score"), sensitive="sex"):
        given = [str(path) for path in (tables or [table])]
        rest = [*score, "--sensitive", sensitive, *QUICK, *arguments]
        code = main(["audit", *given, *map(str, rest)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


FEATURES = ["--id", "name", "--features", "age,marital_status,job"]


def test_given_factors_are_printed_beside_the_gap(run, tmp_path):
    out = tmp_path / "audit.json"
    code, printed, _ = run(*FEATURES, "--given", "job,marital_status", "--json", out)
    assert code == 0
    (one,) = Audit.from_json(out.read_text()).conditional
    (line,) = [row for row in printed.splitlines() if row.startswith(f"{one.group} less")]
    for fact in (one.adjusted, one.odds_ratio):
        assert f"{fact.value:z.4f} [{fact.low:z.4f}, {fact.high:z.4f}]" in line
    for words in (f"{one.marginal:z.4f}", f"{one.p_value:.3g}", f"{one.overlap[0]:.1%}"):
        assert words in line


def test_an_audit_is_printed_and_written(run, table, tmp_path):
    out = tmp_path / "audit.json"
    code, printed, _ = run("--label", "repaid", "--positive", "yes", *FEATURES, "--json", out)
    assert code == 0
    assert "mean_parity_gap" in printed
    assert "most surely larger than over everybody where age is above 6" in printed
    found = Audit.from_json(out.read_text())
    assert found.model_name == "score"
    assert found.provenance.source == "people.csv"
    assert len(found.provenance.source_sha256) == 64
    assert found.individuals.ids[0].startswith("person ")
    assert list(found.individuals.columns) == ["age", "marital_status", "job"]
    assert found.gap("true_positive_gap").value is not None


def test_stages_in_words_and_few_people_and_spaces(run, tmp_path):
    people = pd.DataFrame(
        {
            "applied": 1,
            "hired": np.where(np.arange(205) % 3 == 0, "yes", "no"),
            "race": ["White"] * 100 + ["White "] * 100 + ["Rare"] * 5,
        }
    )
    path = tmp_path / "stages.csv"
    people.to_csv(path, index=False)
    given = {"tables": [path], "score": ("--stages", "applied,hired"), "sensitive": "race"}
    code, _, error = run(**given)
    assert code == 2
    assert "--accepted hired=yes" in error
    code, printed, _ = run("--accepted", "yes", **given)
    assert code == 0
    rows = re.findall(r"^hired of applied +(.*?)  +(.*)$", printed, re.MULTILINE)
    assert [name for name, _ in rows] == ["Rare", "White", "White␣"]
    assert rows[0][1].split("  ")[-1].strip() == "too few people"
    assert "0.3400" in rows[1][1]
    assert "\u2068" not in printed


@pytest.fixture
def procedure(tmp_path):
    """A procedure in which each stage has words of its own for going on."""
    place = np.arange(300)
    path = tmp_path / "procedure.csv"
    pd.DataFrame(
        {
            "applied": 1,
            "interview": np.where(place % 3 == 0, "rejected", "invited"),
            "offer": np.where(place % 5 == 1, "yes", "no"),
            "sex": ["f", "m"] * 150,
        }
    ).query("interview == 'invited' or offer == 'no'").to_csv(path, index=False)
    return {"tables": [path], "score": ("--stages", "applied,interview,offer")}


def test_each_stage_has_its_own_word(run, procedure, tmp_path):
    out, numbers = tmp_path / "words.json", tmp_path / "numbers.json"
    words = "--accepted", "interview=invited", "--accepted", "offer=yes"
    code, printed, error = run(*words, "--json", out, **procedure)
    assert code == 0, error
    assert "a decision of “yes”" in printed
    people = pd.read_csv(procedure["tables"][0])
    people["interview"] = (people["interview"] == "invited").astype(int)
    people["offer"] = (people["offer"] == "yes").astype(int)
    people.to_csv(procedure["tables"][0], index=False)
    assert run("--json", numbers, **procedure)[0] == 0
    found, expected = (Audit.from_json(file.read_text()) for file in (out, numbers))
    assert found.stages == expected.stages
    assert found.gaps == expected.gaps
    assert found.provenance.settings["accepted"] == "yes"
    assert found.provenance.settings["accepted_by_stage"] == "interview=invited, offer=yes"


def test_a_word_for_all_stages_and_another_for_one(run, procedure):
    assert run("--accepted", "yes", "--accepted", "interview=invited", **procedure)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["yes"], "'yes' is not among the values of column 'interview' ('rejected', 'invited')"),
        (["yes"], "A column may have its own word: --accepted interview=invited."),
        (["interview=invited"], "--accepted offer=yes"),
        (["interview=asked", "offer=yes"], "column 'interview' ('rejected', 'invited')"),
        (["intervew=invited", "offer=yes"], "no column 'intervew'. Did you mean 'interview'?"),
        (["yes", "invited"], "--accepted gives all columns two words, 'yes' and 'invited'"),
        (["offer=yes", "offer=no"], "--accepted gives column 'offer' two words, 'yes' and 'no'"),
    ],
)
def test_a_stage_whose_word_is_wrong_lists_its_values(run, procedure, words, said):
    code, _, error = run(*(part for word in words for part in ("--accepted", word)), **procedure)
    assert code == 2
    assert said in error


def test_models_have_their_own_words(run, table):
    people = pd.read_csv(table)
    people["first"] = np.where(people["score"] >= 0.5, "a=b", "no")
    people["second"] = np.where(people["score"] >= 0.4, "granted", "refused")
    people.to_csv(table, index=False)
    score = "--score", "first,second"
    code, _, error = run(
        *FEATURES, "--accepted", "first=a=b", "--accepted", "second=granted", score=score
    )
    assert code == 0, error
    assert run(*FEATURES, "--accepted", "a=b", score=("--score", "first"))[0] == 0


def test_all_changes_are_printed_and_stages_are_filed(run, table, tmp_path):
    people = pd.read_csv(table)
    people["year"] = np.resize([2020, 2021], len(people))
    people["applied"], people["hired"] = 1, (people.score > 0.5).astype(int)
    people[["sex", "year", "applied", "hired", "repaid"]].to_csv(table, index=False)
    labelled = "--label", "repaid", "--positive", "yes", "--by", "year", "--tables", tmp_path / "t"
    code, printed, _ = run("--stages", "applied,hired", *labelled, score=())
    assert code == 0
    assert "single periods" not in printed
    gate = "--fail-above", "demographic_parity_gap=0.9"
    code, held, _ = run("--stages", "applied,hired", *labelled, *gate, score=())
    assert code == 0
    assert "\nThe bounds are for the whole table; single periods are not held to them." in held
    for name in ("demographic_parity_gap", "true_positive_gap", "false_positive_gap"):
        assert re.search(rf"^2020 to 2021 +{name} ", printed, re.MULTILINE)
    assert "p (Holm) is adjusted for these 3 tests." in printed
    filed = pd.read_csv(tmp_path / "t" / "hired_of_applied_sex.csv")
    assert filed.columns[0] == "sex"
    assert filed["number selected"].sum() == people.hired.sum()


def test_periods_and_stages_are_printed_and_written(run, table, tmp_path):
    people = pd.read_csv(table)
    people["year"] = np.resize([2020, 2021], len(people))
    people["applied"], people["invited"] = 1, (people.score > 0.4).astype(int)
    people["hired"] = ((people.score > 0.6) & (people.sex != people.sex[0])).astype(int)
    people[["sex", "year", "applied", "invited", "hired"]].to_csv(table, index=False)
    page, out = tmp_path / "report.html", tmp_path / "audit.json"
    steps = ("--stages", "applied,invited,hired", "--by", "year", "--json", out, "--out", page)
    code, printed, _ = run(*steps, score=())
    assert code == 0
    for words in ("2020 to 2021", "hired of invited", "The smallest gaps that this many people"):
        assert words in printed
    for column, role in (("year", "period"), ("applied", "stage"), ("hired", "score")):
        assert re.search(rf"^{column} +{role} ", printed, re.MULTILINE)
    found = Audit.from_json(out.read_text())
    assert len(found.periods) == 2
    assert len(found.stages) == 3
    assert "Stage by stage" in page.read_text()
    assert "in every period" in page.read_text()
    assert "takes the place of --score" in run(*steps)[2]
    assert "'yaer'" in run("--by", "yaer", score=("--score", "hired"))[2]


def test_decisions_in_words_are_those_in_numbers(run, table, tmp_path):
    people = pd.read_csv(table)
    people["answer"] = np.where(people["score"] >= 0.5, "granted", "refused")
    people["decided"] = (people["score"] >= 0.5).astype(int)
    people.to_csv(table, index=False)
    found = []
    for score, more in (("answer", ["--accepted", "granted"]), ("decided", [])):
        out = tmp_path / f"{score}.json"
        code, _, _ = run(*FEATURES, *more, "--json", out, score=("--score", score))
        assert code == 0
        found.append(Audit.from_json(out.read_text()))
    words, numbers = (one.gap("demographic_parity_gap") for one in found)
    assert words == numbers
    assert words.value > 0.0


def test_a_decision_in_words_is_told_where_the_rule_is(run, table, tmp_path):
    people = pd.read_csv(table)
    people["answer"] = np.where(people["score"] >= 0.5, "granted", "refused")
    people.to_csv(table, index=False)
    out = tmp_path / "page.html"
    for more, words in ([], "of"), (["--favourable", "low"], "other than"):
        tables = "--tables", tmp_path / "tables"
        given = "--accepted", "granted", *more, "--out", out, *tables
        _, printed, _ = run(*FEATURES, *given, score=("--score", "answer"))
        rule = f"decision {words} “granted”"
        assert f"means a {rule}" in printed
        text = out.read_text("utf-8")
        assert f": {rule}</dd>" in text  # beside the number of people
        assert f"a {rule}." in text  # beside the rates to be filed
        summary = (tmp_path / "tables" / "summary.csv").read_text("utf-8")
        assert f"a decision {words} 'granted'" in summary
        assert '<th scope="row">accepted</th><td><bdi>granted</bdi></td>' in text


@pytest.mark.parametrize(
    ("score", "accepted", "said"),
    [
        ("repaid", [], "holds words (no, yes), but scores are numbers. If the words are decisions"),
        ("repaid", ["--accepted", "granted"], "--accepted: 'granted' is not among the values"),
        ("score", ["--accepted", "1"], "holds more than two values"),
    ],
)
def test_decisions_that_cannot_be_read_are_errors(run, score, accepted, said):
    code, _, error = run(*accepted, score=("--score", score))
    assert code == 2
    assert said in error


def test_decisions_that_differ_in_capitals_are_told_so(run, table):
    people = pd.read_csv(table)
    people.loc[0, "repaid"] = str(people["repaid"][0]).upper() + " "
    people.to_csv(table, index=False)
    code, _, error = run("--accepted", "yes", score=("--score", "repaid"))
    assert code == 2
    assert "differ only in capitals or spaces: spell them the same way" in error


def test_a_word_to_type_is_quoted(run, table):
    pd.read_csv(table).replace({"repaid": {"yes": "paid back"}}).to_csv(table, index=False)
    _, _, error = run(score=("--score", "repaid"))
    assert "--accepted 'paid back'" in error


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{:.4f}", "name the decimal sign of the CSV file"),
        ("{:.2f}%", "holds numbers with signs, such as"),
    ],
)
def test_scores_that_are_written_otherwise_are_told(run, table, written, said):
    people = pd.read_csv(table)
    comma = "%" not in written
    people["score"] = [
        written.format(score).replace(".", "," if comma else ".") for score in people["score"]
    ]
    people.to_csv(table, index=False)
    code, _, error = run()
    assert code == 2
    assert said in error
    assert "y_score" not in error


def test_percentages_are_to_be_divided(run, table):
    people = pd.read_csv(table)
    people.assign(score=100 * people["score"]).to_csv(table, index=False)
    code, _, error = run()
    assert code == 2
    assert "must lie in [0, 1]" in error
    assert "divide percentages by 100" in error


def test_the_other_columns_are_the_features(run, tmp_path):
    out = tmp_path / "audit.json"
    run("--label", "repaid", "--positive", "yes", "--id", "name", "--json", out)
    columns = json.loads(out.read_text())["individuals"]["columns"]
    assert list(columns) == ["age", "marital_status", "income", "job", "noise", "fair"]


def test_parquet_is_read_as_csv_is(run, table, tmp_path):
    import pandas as pd

    parquet = tmp_path / "people.parquet"
    pd.read_csv(table).to_parquet(parquet)
    outs = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, out in zip((table, parquet), outs, strict=True):
        assert run(*FEATURES, "--json", out, tables=[path])[0] == 0
    first, second = (Audit.from_json(out.read_text()) for out in outs)
    assert first.gaps == second.gaps
    assert first.provenance.features_sha256 == second.provenance.features_sha256
    assert first.provenance.source_sha256 != second.provenance.source_sha256


@pytest.fixture
def unfair(table):
    """Let the scores of men be higher by a lot."""
    people = pd.read_csv(table)
    people["score"] = np.clip(people["score"] + 0.2 * (people["sex"] == "male"), 0.0, 1.0)
    people.to_csv(table, index=False)


def test_bounds_decide_the_exit_code(run, unfair, tmp_path):
    out = tmp_path / "audit.json"
    run(*FEATURES, "--json", out)
    gap = Audit.from_json(out.read_text()).gap("mean_parity_gap")
    between = f"mean_parity_gap={(gap.value + gap.high) / 2}"
    code, printed, _ = run(*FEATURES, "--fail-above", between)
    assert code == 0
    assert "Above the bound" not in printed
    assert "Gate 'shown': fails if the whole confidence interval is beyond the bound" in printed
    assert printed.endswith("these people do not show that a bound is exceeded.\n")
    code, printed, _ = run(*FEATURES, "--fail-above", between, "--gate", "upper")
    assert code == 1
    assert "the upper limit of mean_parity_gap of score" in printed
    below = f"mean_parity_gap={(gap.value + gap.low) / 2}"
    for mode, wanted in (("shown", 0), ("estimate", 1), ("upper", 1)):
        code, printed, _ = run(*FEATURES, "--fail-above", below, "--gate", mode)
        assert code == wanted
        assert f"Gate {mode!r}: " in printed
    code, printed, _ = run(*FEATURES, "--fail-above", f"mean_parity_gap={gap.low - 0.001}")
    assert code == 1
    assert "Above the bound: the lower limit of mean_parity_gap of score" in printed
    two = ["--fail-above", "mean_parity_gap=0.99", "--fail-above", "ks_parity_gap=0"]
    assert run(*FEATURES, *two, "--gate", "estimate")[0] == 1


def test_every_model_is_held_to_the_bound_but_the_baseline(run, unfair, tmp_path):
    both = ("--score", "score", "--score", "fair")
    out = tmp_path / "both.json"
    run(*FEATURES, "--json", out, score=both)
    first, second = (a.gap("mean_parity_gap") for a in Comparison.from_json(out.read_text()).audits)
    assert first.low > second.value  # the first model alone breaks the bound
    bound = "--fail-above", f"mean_parity_gap={(first.low + second.value) / 2}"
    code, printed, _ = run(*FEATURES, *bound, score=both)
    assert code == 1
    assert "lower limit of mean_parity_gap of score, " in printed
    assert run(*FEATURES, *bound, "--baseline", "score", score=both)[0] == 0
    assert run(*FEATURES, *bound, "--baseline", "fair", score=both)[0] == 1
    code, _, error = run(*FEATURES, *bound, "--baseline", "fairer", score=both)
    assert code == 2
    assert "--baseline fairer is not one of the models (score, fair)" in error


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("mean_parity=0.1", "Did you mean 'mean_parity_gap'?"),
        ("mean_parity_gap", "GAP=BOUND"),
        ("mean_parity_gap=small", "GAP=BOUND"),
        ("mean_parity_gap=1", "[0, 1)"),
        ("mean_parity_gap=-0.1", "[0, 1)"),
        ("mean_parity_gap=nan", "[0, 1)"),
        ("true_positive_gap=0.1", "needs the labels"),
    ],
)
def test_a_bound_that_cannot_be_checked_is_an_error(run, bound, said):
    code, _, error = run(*FEATURES, "--fail-above", bound)
    assert code == 2
    assert said in error


def test_a_gap_that_is_not_stated_cannot_pass(run):
    code, _, error = run(
        *FEATURES, "--fail-above", "mean_parity_gap=0.5", "--min-group-size", "5000"
    )
    assert code == 2
    assert "not stated" in error
    assert "'female'" in error


def test_a_wrong_column_is_met_with_the_near_one(run):
    for wrong, near in (("Sex", "sex"), ("sexx", "sex"), ("SEX", "sex")):
        code, _, error = run(sensitive=wrong)
        assert code == 2
        assert f"no column {wrong!r}. Did you mean {near!r}?" in error
        assert error.count("\n") == 1
    code, _, error = run("--features", "marital_statu")
    assert code == 2
    assert "Did you mean 'marital_status'?" in error


def test_several_scores_and_several_tables_are_compared(run, table, tmp_path):
    out = tmp_path / "both.json"
    code, printed, _ = run(
        *FEATURES,
        "--privileged",
        "male",
        "--json",
        out,
        "--fail-above",
        "demographic_parity_gap=0.9",
        score=("--score", "score", "--score", "fair"),
    )
    assert code == 0
    header = next(line for line in printed.splitlines() if line.startswith("gap ["))
    assert "score" in header
    assert "fair" in header
    found = Comparison.from_json(out.read_text())
    assert [one.model_name for one in found.audits] == ["score", "fair"]
    assert found.pairs[0].undesirable_flips is not None
    assert found.pairs[0].rank_agreement["male"] == pytest.approx(1.0, abs=1e-3)

    other = tmp_path / "other.csv"
    other.write_text(table.read_text())
    code, _, _ = run(*FEATURES, "--json", out, tables=[table, other])
    assert code == 0
    found = Comparison.from_json(out.read_text())
    assert [one.model_name for one in found.audits] == ["people", "other"]


def test_several_groups_are_favoured(run, table, tmp_path):
    people = pd.read_csv(table)
    people.assign(race=["u", "v", "w"] * 400).to_csv(table, index=False)
    scores = ("--score", "score", "--score", "fair")
    given = [
        *FEATURES,
        "--privileged",
        "male, u",
        "--privileged",
        "male, v",
        "--privileged",
        "male, w",
    ]
    out = tmp_path / "a.json"
    code, _, error = run(*given, "--json", out, score=scores, sensitive="sex,race")
    assert code == 0, error
    found = Comparison.from_json(out.read_text())
    assert found.privileged == "male, u; male, v; male, w"
    (pair,) = found.pairs
    for label, (_, lost, gained, _) in pair.decisions.items():
        assert pair.undesirable_flips[label] == (gained if "female" not in label else lost)


def test_tables_of_other_people_are_not_compared(run, table, tmp_path):
    lines = table.read_text().splitlines()
    shorter, shuffled = tmp_path / "shorter.csv", tmp_path / "shuffled.csv"
    shorter.write_text("\n".join(lines[:-1]))
    shuffled.write_text("\n".join([lines[0], *lines[:0:-1]]))
    for other, said in ((shorter, "1199 rows"), (shuffled, "differ in column 'name'")):
        code, _, error = run("--id", "name", tables=[table, other])
        assert code == 2
        assert said in error


def test_a_pattern_without_quotes_is_told(run, table, tmp_path):
    people = pd.read_csv(table)
    files = [tmp_path / f"part{half}.parquet" for half in (0, 1)]
    for half, file in enumerate(files):
        people.iloc[half * 500 : half * 500 + 500].to_parquet(file)
    code, _, error = run(tables=files)
    assert code == 2
    assert f"put quotes around the pattern, such as '{tmp_path}/*.parquet'" in error


def test_people_can_be_left_out(run, tmp_path):
    out = tmp_path / "audit.json"
    run(*FEATURES, "--json", out, "--no-individuals")
    assert json.loads(out.read_text())["individuals"] is None
    assert "person " not in out.read_text()
    run(*FEATURES, "--json", out, "--hide", "job", "--hide", "marital_status")
    people = json.loads(out.read_text())["individuals"]
    assert list(people["columns"]) == ["age"]
    assert people["hidden"] == ["job", "marital_status"]
    for more in [], ["--hide", "individuals"], ["--no-individuals"]:
        code, _, error = run(*FEATURES, "--hide", "wage", *more)
        assert code == 2
        assert "no column 'wage' to hide. The columns are age, marital_status, job." in error


def test_a_report_and_a_filing_use_the_words_that_were_typed(run, tmp_path):
    out, filing = tmp_path / "report.html", tmp_path / "filing.html"
    more = ["--filing", filing, "--filing-field", "auditor=A. Doe"]
    more += ["--label", "repaid", "--positive", "yes"]
    code, printed, _ = run(*FEATURES, "--out", out, *more, "--label-words", "left, stayed")
    assert code == 0
    assert f"Report: {out}" in printed
    assert f"Filing: {filing}" in printed
    for file in (out, filing):
        assert "the label “stayed”" in file.read_text("utf-8")
    assert "A. Doe" in filing.read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label-words", "one"], "--label-words must be two texts"),
        (["--filing", "f.docx"], "--filing: f.docx must end in .html or .pdf"),
        (["--filing", "f.html", "--filing-field", "judge=x"], "not one of auditor"),
    ],
)
def test_what_cannot_be_filed_is_said_first(run, options, words):
    code, printed, error = run(*FEATURES, *options)
    assert (code, printed) == (2, "")
    assert words in error


def test_a_report_that_cannot_be_made_is_said_first(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, printed, error = run(*FEATURES, "--out", tmp_path / "report.html")
    assert code == 2
    assert printed == ""
    assert "fairmatch[report]" in error


class _Model:
    sensitive_column = "sex"
    feature_names_in_ = np.array(["age", "sex"], dtype=object)
    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X, *, sensitive_features=None):
        assert list(X.columns) == ["age", "sex"]
        assert sensitive_features is None
        score = X["age"].to_numpy() / 100
        return np.column_stack([1 - score, score])


def test_a_saved_model_scores_the_table(run, monkeypatch, tmp_path):
    monkeypatch.setattr(fairmatch, "load", lambda folder: _Model(), raising=False)
    out = tmp_path / "audit.json"
    given = [*FEATURES, "--label", "repaid", "--positive", "yes", "--json", out]
    code, _, _ = run("--model", tmp_path / "ages", *given, score=())
    assert code == 0
    found = Audit.from_json(out.read_text())
    assert found.model_name == "ages"
    ages = found.individuals.columns["age"]
    assert found.individuals.scores == pytest.approx(np.array(ages) / 100)
    code, _, _ = run("--model", tmp_path / "ages", *given)
    assert [a.model_name for a in Comparison.from_json(out.read_text()).audits] == ["score", "ages"]


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        ("", "empty.csv", "cannot be read"),
        ("a,b\n1,2\n", "people.docx", "neither a .csv nor a .parquet file"),
        ("not parquet", "people.parquet", "cannot be read"),
        ("score,sex\nhigh,a\nlow,b\n", "words.csv", "but scores are numbers"),
        ("score,sex\n0.5,a\n,b\n", "gaps.csv", "1 missing scores"),
        ("score,sex\n0.5,a\n0.4,\n", "groups.csv", "missing or unknown values"),
    ],
)
def test_tables_that_cannot_be_audited_are_named(run, tmp_path, content, name, said):
    path = tmp_path / name
    path.write_text(content)
    code, _, error = run(tables=[path])
    assert code == 2
    assert said in error
    assert error.count("\n") == 1


def test_a_table_that_is_absent_is_named(run, tmp_path):
    code, _, error = run(tables=[tmp_path / "absent.csv"])
    assert code == 2
    assert "absent.csv" in error


def test_nothing_to_audit_is_said(run):
    code, _, error = run(score=())
    assert code == 2
    assert "column of scores" in error


def test_a_terminal_sees_progress(run, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(Console, "is_terminal", property(lambda self: True))
    code, _, error = run(*FEATURES)
    assert code == 0
    assert "subsets" in error


def test_labels_that_are_words_ask_which_is_positive(tmp_path, capsys):
    table = pd.DataFrame({"s": [0.1, 0.9] * 40, "sex": ["f", "f", "m", "m"] * 20})
    table["hired"] = np.where(table.s > 0.5, "yes", "no")
    file = tmp_path / "people.csv"
    table.to_csv(file, index=False)
    asked = ["audit", str(file), "--score", "s", "--sensitive", "sex", "--label", "hired"]
    assert main(asked) == 2
    error = capsys.readouterr().err
    assert "--positive: the values of column 'hired' are" in error
    assert "'1'" not in error
    assert main([*asked, "--positive", "yes"]) == 0


def test_the_reading_of_every_column_is_shown_first_and_kept(run, tmp_path):
    out = tmp_path / "audit.json"
    code, printed, _ = run("--id", "name", "--drop", "noise", "--json", out)
    assert code == 0
    lines = printed.splitlines()
    assert lines[0] == "How the 10 columns are read (1,200 rows):"
    assert lines.index(next(line for line in lines if line.startswith("score: "))) > 10
    found = Audit.from_json(out.read_text())
    roles = {column.name: column.role for column in found.columns}
    assert roles["name"] == "id"
    assert roles["noise"] == "ignored"
    assert roles["repaid"] == "feature"
    assert list(found.individuals.columns) == [c.name for c in found.columns if c.role == "feature"]


def test_identifiers_are_left_out_and_said(run, tmp_path):
    out = tmp_path / "audit.json"
    code, printed, _ = run("--json", out)
    assert code == 0
    assert "looks like an identifier" in printed
    assert "name" not in json.loads(out.read_text())["individuals"]["columns"]


@pytest.mark.parametrize(("threshold", "who"), [("0", "Everybody"), ("1", "Nobody"), ("0.5", "")])
def test_decisions_that_tell_nobody_apart_are_printed_as_such(run, threshold, who):
    _, printed, _ = run(*FEATURES, "--threshold", threshold)
    assert ("all decisions are equal" in printed) == bool(who)
    assert f"{who} is selected" in printed or not who


def test_rates_ratio_and_direction_are_printed(run):
    _, printed, _ = run(*FEATURES, "--outcome", "hired")
    assert "score: 1,200 people; hired means a score at or above 0.5" in printed
    assert "Smallest ratio: 0." in printed
    line = next(line for line in printed.splitlines() if line.startswith("demographic_parity"))
    assert line.endswith(("male ahead of female", "female ahead of male"))
    _, turned, _ = run(*FEATURES, "--favourable", "low")
    assert "not flagged means a score below 0.5" in turned


def test_a_ratio_is_held_to_a_bound(run):
    exact = "--fail-below", "selection_ratio=1", "--gate", "estimate"
    code, printed, _ = run(*FEATURES, *exact)
    assert code == 1
    assert "Below the bound: selection_ratio of score, 0." in printed
    code, printed, _ = run(*FEATURES, "--fail-below", "selection_ratio=1")
    assert code == 1
    assert "Below the bound: the upper limit of selection_ratio of score, 0." in printed
    assert run(*FEATURES, "--fail-below", "selection_ratio=0.01")[0] == 0
    code, printed, _ = run(*FEATURES, "--fail-below", "selection_ratio=0.95", "--gate", "upper")
    assert code == 1
    assert "the lower limit of selection_ratio" in printed
    _, _, error = run(*FEATURES, "--fail-above", "selection_ratio=0.8")
    assert "Type --fail-below selection_ratio=0.8." in error
    for bad, said in (("mean_parity_gap=0.8", "no ratio"), ("selection_ratio=0", "(0, 1]")):
        code, _, error = run(*FEATURES, "--fail-below", bad)
        assert code == 2
        assert said in error


@pytest.mark.parametrize("gate", ["demographic_parity_gap=0.5", "equalized_odds_gap=0.5"])
@pytest.mark.parametrize("threshold", ["0", "1"])
def test_decisions_that_tell_nobody_apart_pass_no_gate(run, gate, threshold):
    labels = ["--label", "repaid", "--positive", "yes"]
    code, _, error = run(
        *FEATURES, *labels, "--threshold", threshold, "--fail-above", gate, tables=None
    )
    assert code == 2
    assert "cannot pass a gate" in error
    assert ("Everybody" if threshold == "0" else "Nobody") in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threshold", "5"], "--threshold must be a number in [0, 1]"),
        (["--confidence", "1.5"], "confidence"),
        (["--out", "report.pdf"], "does not end in .html"),
    ],
)
def test_what_cannot_be_meant_is_said_before_the_work(run, arguments, said):
    code, _, error = run(*FEATURES, *arguments)
    assert code == 2
    assert said in error


def test_who_made_the_audit_is_kept(run, tmp_path):
    out = tmp_path / "audit.json"
    given = {"title": "Loans", "author": "A. Body", "date": "2026-11-17", "purpose": "Yearly"}
    options = [part for name, text in given.items() for part in (f"--{name}", text)]
    run(*FEATURES, *options, "--json", out)
    assert json.loads(out.read_text())["about"] == given


def test_a_column_that_gives_the_group_away_is_refused(run, table, tmp_path):
    people = pd.read_csv(table)
    people["title"] = np.where(people.sex == "female", "Ms", "Mr")
    leaking = tmp_path / "leaking.csv"
    people.to_csv(leaking, index=False)
    code, _, error = run("--id", "name", tables=[leaking])
    assert code == 2
    assert "column 'title' determines the group" in error
    assert "--keep" in error
    code, printed, _ = run("--id", "name", "--keep", "title", tables=[leaking])
    assert code == 0
    assert "  The column title determines the group. If it counts" in printed


def test_all_columns_that_stop_an_audit_are_named_at_once(run, table, tmp_path):
    people = pd.read_csv(table)
    people["title"] = np.where(people.sex == "female", "Ms", "Mr")
    people["wage"] = [f"${1000 + row:,}" for row in range(len(people))]
    people["debt"] = [f"${9000 + row:,}" for row in range(len(people))]
    doubtful = tmp_path / "doubtful.csv"
    people.to_csv(doubtful, index=False)
    code, _, error = run("--id", "name", tables=[doubtful])
    assert code == 2
    assert "column 'title' determines the group" in error
    for name in ("wage", "debt"):
        assert f"Column '{name}' holds numbers with signs" in error
    code, _, _ = run("--id", "name", "--drop", "title,wage,debt", tables=[doubtful])
    assert code == 0


def test_an_aggregated_table_is_audited_by_its_counts(tmp_path, capsys):
    people = pd.DataFrame({"score": [0.2, 0.8] * 2, "sex": ["f", "f", "m", "m"]})
    people["n"] = [600, 400, 300, 700]
    file, out = tmp_path / "counts.csv", tmp_path / "audit.json"
    people.to_csv(file, index=False)
    asked = ["audit", str(file), "--score", "score", "--sensitive", "sex", "--weight", "n"]
    assert main([*asked, "--weight-kind", "counts", "--json", str(out)]) == 0
    found = Audit.from_json(out.read_text())
    assert found.n_rows == 2000
    assert found.gap("demographic_parity_gap").value == pytest.approx(0.3)
    assert main(asked) == 0  # two rows of a group are too few to speak of
    assert "weight_kind='counts'" in capsys.readouterr().out


def test_an_audit_with_weights_of_a_survey_is_written(run, table, tmp_path):
    people = pd.read_csv(table)
    people.assign(w=1.0 + people.index % 3).to_csv(table, index=False)
    out = tmp_path / "audit.json"
    assert run(*FEATURES, "--weight", "w", "--json", out)[0] == 0
    assert Audit.from_json(out.read_text()).weights == "survey"


def test_several_attributes_are_crossed(run, tmp_path):
    out = tmp_path / "audit.json"
    features = ["--id", "name", "--features", "age,job"]
    code, printed, _ = run(*features, "--json", out, sensitive="sex,marital_status")
    assert code == 0
    found = Audit.from_json(out.read_text())
    assert len(found.groups) == 8
    assert [attribute.name for attribute in found.attributes] == ["sex", "marital_status"]
    assert "female, divorced" in printed


def test_people_of_whom_the_group_is_missing_are_counted(run, table, tmp_path):
    people = pd.read_csv(table)
    people.loc[:99, "sex"] = np.nan
    file, out = tmp_path / "some.csv", tmp_path / "audit.json"
    people.to_csv(file, index=False)
    code, printed, _ = run(*FEATURES, "--json", out, tables=[file])
    assert code == 0
    assert "For 100 people 'sex' is missing." in printed
    assert Audit.from_json(out.read_text()).unknown == ("unknown",)


def test_individuals_can_be_hidden_as_a_whole(run, tmp_path):
    out = tmp_path / "audit.json"
    run(*FEATURES, "--json", out, "--hide", "individuals")
    assert json.loads(out.read_text())["individuals"] is None


def test_tables_to_file_are_written(run, tmp_path):
    folder = tmp_path / "filed"
    code, printed, _ = run("--id", "name", "--features", "age", "--tables", folder)
    assert code == 0
    assert f"Table: {folder / 'sex.csv'}" in printed
    assert (folder / "sex.csv").read_text().startswith("sex,number of people,number selected,")
    taken = tmp_path / "taken.txt"
    taken.write_text("mine")
    code, _, error = run("--id", "name", "--tables", taken)
    assert code == 2
    assert "--tables must be a folder" in error


REAL = ["--kind", "number", "--features", "age,marital_status,job"]


@pytest.fixture
def hours(table):
    X = pd.read_csv(table)
    X["score"] = 30.0 + 20.0 * X["score"]
    X["worked"] = X["score"] + np.random.default_rng(1).normal(0, 2, len(X))
    X.to_csv(table, index=False)
    return X


def test_predictions_are_audited_in_units(run, hours, tmp_path):
    out, page = tmp_path / "audit.json", tmp_path / "page.html"
    means = hours.groupby("sex")["score"].mean()
    gap = means.max() - means.min()
    bounds = ["--fail-above", f"mean_parity_gap={gap + 0.01}"]
    code, printed, _ = run(*REAL, "--label", "worked", *bounds, "--json", out, "--out", page)
    assert code == 0
    assert "predictions in units of the target" in printed
    assert f"Standard deviation of the target: {hours['worked'].std(ddof=0):.4f}" in printed
    found = Audit.from_json(out.read_text())
    assert found.gap("mean_parity_gap").value == pytest.approx(gap)
    assert "Mean prediction of each group" in page.read_text("utf-8")
    relative = gap / hours["worked"].std(ddof=0) - 0.001
    code, printed, _ = run(*REAL, "--label", "worked", "--fail-above",
                           f"relative_mean_parity_gap={relative}",
                           "--gate", "estimate")  # fmt: skip
    assert code == 1
    assert "Above the bound: relative_mean_parity_gap of score" in printed


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--fail-below", "selection_ratio=0.8"], "predictions select nobody"),
        (["--fail-above", "demographic_parity_gap=0.1"], "there is no gap"),
        (["--fail-above", "ks_parity_gap=2"], "a bound in [0, 1)"),
        (["--fail-above", "mean_parity_gap=-1"], "a bound in [0, inf)"),
        (["--tables", "filed"], "no rates to file"),
        (["--privileged", "male"], "--privileged male"),
        (["--positive", "yes"], "--positive yes was given with"),
        (["--threshold", "0.4"], "--threshold 0.4"),
    ],
)
def test_what_predictions_do_not_have_cannot_be_asked_for(run, hours, given, words):
    code, _, error = run(*REAL, *given)
    assert code == 2
    assert words in error


def test_predictions_without_the_scale_name_it(run, hours):
    code, _, error = run(*FEATURES)
    assert code == 2
    assert "for predictions in units of the target" in error


def test_like_is_compared_with_like(run, table, tmp_path):
    people = pd.read_csv(table).assign(code=np.arange(1200) % 7 + 4500)
    people.to_csv(table, index=False)
    factor = next(name for name in people if people[name].nunique() < 10 and name not in
                  ("sex", "repaid", "code"))  # fmt: skip
    code, *_ = run(
        "--drop", "name", "--label", "repaid", "--positive", "yes", "--given", f"{factor},code",
        "--categorical", "code", "--similar", factor, "--json", tmp_path / "a.json",
    )  # fmt: skip
    assert code == 0
    found = Audit.from_json((tmp_path / "a.json").read_text())
    assert found.conditional
    assert found.similarity == {factor: 1.0}
    assert next(c for c in found.columns if c.name == "code").type == "categories"


def test_columns_of_the_distance_have_weights(run, tmp_path):
    out = tmp_path / "audit.json"
    assert run(*FEATURES, "--similar", "age=2,job", "--json", out)[0] == 0
    assert Audit.from_json(out.read_text()).similarity == {"age": 2.0, "job": 1.0}


@pytest.mark.parametrize(("asked", "weighed"), [((), True), (("--similar", "range"), False)])
def test_relevance_counts_unless_the_range_is_asked_for(run, table, tmp_path, asked, weighed):
    people = pd.read_csv(table)
    people["repaid"] = np.where(people.age > people.age.median(), "yes", "no")
    people.to_csv(table, index=False)
    out = tmp_path / "a.json"
    few = "--resamples", 100, "--sample", 200
    code, *_ = run(*FEATURES, "--label", "repaid", "--positive", "yes", *asked, *few, "--json", out)
    assert code == 0
    found = Audit.from_json(out.read_text())
    assert (found.similarity is not None) == weighed


@pytest.mark.parametrize("names", [("low", "mid", "top"), (1, 2, 3)])
def test_one_column_may_hold_the_class_of_each_person(run, tmp_path, names):
    generator = np.random.default_rng(0)
    people = pd.DataFrame({
        "grade": generator.choice(names, 400), "true": generator.choice(names, 400),
        "sex": np.resize(["f", "m"], 400),
    })  # fmt: skip
    people.to_csv(tmp_path / "grades.csv", index=False)
    low, middle, top = map(str, names)
    given = {"tables": [tmp_path / "grades.csv"], "sensitive": "sex"}
    classes = "--classes", f"{low},{middle},{top}", "--favourable", f"{middle},{top}"
    out = tmp_path / "a.json"
    more = *classes, "--label", "true", "--json", out
    code, printed, _ = run(*more, score=("--score", "grade"), **given)
    assert code == 0
    assert f"means that the most probable class is {middle} or {top}" in printed
    found = Audit.from_json(out.read_text())
    assert found.model_name == "grade"
    for group in found.groups:
        rate = (people.grade[people.sex == group.label] != names[0]).mean()
        assert group.selection_rate.value == pytest.approx(rate)
    wrong = "--classes", f"{low},{top}", "--favourable", top
    code, _, error = run(*wrong, score=("--score", "grade"), **given)
    assert code == 2
    assert middle in error


def test_codes_of_groups_and_periods_stay_whole_where_one_is_missing(run, tmp_path):
    generator = np.random.default_rng(0)
    people = pd.DataFrame({"score": generator.random(400), "sex": np.resize([1, 2], 400)})
    people["year"] = np.repeat([2024, 2025], 200)
    people = people.astype({"sex": "Int64", "year": "Int64"})
    people.loc[[3, 250], "sex"] = people.loc[[5], "year"] = pd.NA
    people.to_csv(tmp_path / "people.csv", index=False)
    out = tmp_path / "a.json"
    more = "--reference", 2, "--by", "year", "--json", out
    code, _, error = run(*more, tables=[tmp_path / "people.csv"])
    assert code == 0, error
    found = Audit.from_json(out.read_text())
    assert [group.label for group in found.groups] == ["1", "2", "unknown"]
    assert found.unknown == ("unknown",)
    assert [one.name for one in found.periods] == ["2024", "2025"]
    assert found.reference == "2"
