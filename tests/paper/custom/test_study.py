"""Own tables and methods: what a file may say, and that what it says is run."""

import pickle
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from paper.records import RecordStore
from paper.specs import Problem
from smallruns import content, loans, small_problem, small_table, tiny_study

from fairmatch.exceptions import ColumnError, GroupError, InputError, LabelError
from paper.custom import extend_study, own_method
from paper.runs import run_all

LOANS = """
[tables.loans]
file = "loans.csv"
target = "repaid"
positive = "yes"
sensitive = "sex"
"""
FOREST = """
[methods.forest]
estimator = "sklearn.ensemble:RandomForestClassifier"
settings = { n_estimators = 5 }
label = "random forest"
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a study file, with its table and other files, and read it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def extend(text, table=None, **files):
        if not (tmp_path / "loans.csv").exists() or table is not None:
            (loans() if table is None else table).to_csv(tmp_path / "loans.csv", index=False)
        for name, lines in files.items():
            (tmp_path / f"{name}.py").write_text(lines)
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        return extend_study(tiny_study(), tmp_path / "mine.toml")

    return extend


DROP = LOANS + 'drop = ["id"]\n'


def test_a_table_becomes_a_dataset(write):
    study = write(DROP)
    assert study.datasets == ("german", "loans")
    dataset, table = study.loaders["loans"](), loans()
    assert dataset.name == "loans"
    assert list(dataset.X.columns) == ["income", "owner", "job"]
    assert np.array_equal(dataset.y, table["repaid"] == "yes")
    assert np.array_equal(dataset.group, table["sex"] == "m")
    assert dataset.groups == ("f", "m")
    assert dataset.favoured_group == "m", "more of them repay"
    assert dataset.batch_size == 40, "a fifth of the rows"
    assert Problem.draw(dataset, 0).split.X_train.shape == (160, 1 + 2 + 3)


def test_what_was_left_open_can_be_said(write):
    text = DROP + 'favoured = "f"\nbatch_size = 16\n'
    dataset = write(text.replace('"yes"', '"no"')).loaders["loans"]()
    assert dataset.groups == ("m", "f")
    assert dataset.batch_size == 16
    assert np.array_equal(dataset.y, loans()["repaid"] == "no")


def test_parquet(write, tmp_path):
    loans().to_parquet(tmp_path / "loans.parquet")
    dataset = write(DROP.replace("csv", "parquet")).loaders["loans"]()
    assert dataset.X.shape == (200, 3)


def test_a_table_named_twice_is_looked_at_once():
    assert tiny_study().only(["german", "adult", "german"]).datasets == ("german", "adult")


def test_only_some_tables(write):
    assert write('datasets = ["loans"]\n' + DROP).datasets == ("loans",)
    assert write('datasets = ["loans", "adult"]\n' + DROP).datasets == ("loans", "adult")


@pytest.mark.parametrize(
    ("labels", "positive", "expected"),
    [
        ([0, 1], "1", 1),
        ([0, 1], "true", 1),
        ([0.0, 1.0], "1", 1.0),
        ([1, 2], '"2"', 2),
        ([False, True], "true", True),
        ([False, True], '"False"', False),
        (["<=50K", ">50K"], '">50K"', ">50K"),
    ],
)
def test_labels_of_any_kind(write, labels, positive, expected):
    values = np.array(labels)[small_table().y]
    study = write(DROP.replace('"yes"', positive), loans(repaid=values))
    assert np.array_equal(study.loaders["loans"]().y, values == expected)


def test_a_changed_table_is_another_run(write, tmp_path):
    def digest(text=DROP, table=None):
        return write(text, table).spec("unfair", "loans", 0).digest

    first = digest()
    assert digest() == first
    assert digest(DROP + 'favoured = "m"\nbatch_size = 40\n') == first, "said or left open"
    others = [
        digest(DROP.replace('["id"]', '["id", "job"]')),
        digest(DROP.replace('"yes"', '"no"')),
        digest(DROP + 'favoured = "f"\n'),
        digest(DROP + "batch_size = 20\n"),
        digest(table=loans(income=1.0 + small_table().X["skill"])),
    ]
    assert len({first, *others}) == 6
    study = write(DROP)
    (tmp_path / "loans.csv").write_text((tmp_path / "loans.csv").read_text() + "\n")
    with pytest.raises(InputError, match="has changed since the runs were planned"):
        study.loaders["loans"]()


def test_the_tables_of_the_paper_keep_their_runs(write):
    before = tiny_study().spec("reg", "german", 0).digest
    assert write(DROP + FOREST).spec("reg", "german", 0).digest == before


def test_a_method_becomes_a_line(write):
    study = write(FOREST)
    series = study.series["forest"]
    assert (series.label, series.method, series.paper) == ("random forest", "forest", None)
    assert list(study.series)[-1] == "forest"
    spec = study.spec("forest", "german", 0)
    assert spec.settings["weights"] == [0.0]
    assert spec.settings["parameters"] == '[{"n_estimators": 5}, []]'
    other = write(FOREST.replace("5", "6")).spec("forest", "german", 0)
    assert other.digest != spec.digest
    assert "forest" in {spec.method for spec in study.runs(["tradeoff"])}


def test_a_parameter_called_weights_does_no_harm(write):
    study = write("""
        [methods.neighbours]
        estimator = "sklearn.neighbors:KNeighborsClassifier"
        settings = { weights = "distance" }
        weight_parameter = "n_neighbors"
        weights = [3]
    """)
    assert study.spec("neighbours", "german", 0).settings["weights"] == [3]
    curve = study.methods["neighbours"].fit(small_problem(), {"weights": [3]}, 0)
    assert np.isin(curve.training_scores[0], [0.0, 1.0]).all(), "each row is its own neighbour"


SPEAKING = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Share(ClassifierMixin, BaseEstimator):
    '''Accept a share of everyone, by the first column.'''

    def __init__(self, share=0.5):
        self.share = share

    def fit(self, X, y, sensitive_features):
        self.cut_ = np.quantile(X[:, 0], 1.0 - self.share)
        self.classes_ = np.unique(y)
        assert X.shape[1] == 4, "groups are not among the columns"
        return self

    def predict(self, X):
        return (X[:, 0] >= self.cut_).astype(int)
"""
SHARE = """
[methods.share]
estimator = "MODULE:Share"
weight_parameter = "share"
weights = [0.2, 0.5]
"""


def test_own_code_runs_in_other_processes(write, tmp_path, monkeypatch):
    study = write(
        'datasets = ["loans"]\n'
        + DROP.replace('["id"]', '["id", "owner"]')
        + SHARE.replace("MODULE", "sharing"),
        sharing=SPEAKING,
    )
    specs = [study.spec(key, "loans", seed) for seed in range(2) for key in ("unfair", "share")]
    store = RecordStore(tmp_path / "records")
    # Workers start in another folder, and unpickle tasks without knowing the one of the module.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(tmp_path)])
    how = {"loaders": study.loaders, "methods": study.methods}
    assert run_all(specs, store, **how, jobs=2) == []
    here = RecordStore(tmp_path / "here")
    assert run_all(specs, here, **how, jobs=1) == []
    assert content(store) == content(here)
    for record in map(store.find, specs[1::2]):
        assert record.curve["weight"] == [0.2, 0.5]
        assert record.curve["acceptance_rate"] == pytest.approx([0.2, 0.5], abs=0.2)


def test_the_quick_profile_trains_all_weights_of_a_method_of_ones_own(write):
    study = write(SHARE.replace("MODULE", "all_weights"), all_weights=SPEAKING)
    assert study.profile.thinning > 2
    assert study.spec("share", "german", 0).settings["weights"] == [0.2, 0.5]


def test_whole_numbers_stay_whole(write, tmp_path):
    text = """
        [methods.tree]
        estimator = "sklearn.tree:DecisionTreeClassifier"
        weight_parameter = "max_depth"
        weights = [WEIGHTS]
    """
    study = write(text.replace("WEIGHTS", "3, 1"))
    spec = study.spec("tree", "german", 0)
    assert [type(weight) for weight in spec.settings["weights"]] == [int, int]
    # A depth of 3.0 is none; so this is another run.
    other = write(text.replace("WEIGHTS", "3.0, 1.0"))
    assert spec.digest != other.spec("tree", "german", 0).digest
    specs = [study.spec(key, "german", 0) for key in ("unfair", "tree")]
    store = RecordStore(tmp_path / "records")
    assert run_all(specs, store, loaders=study.loaders, methods=study.methods, jobs=1) == []
    assert store.find(spec).curve["weight"] == [3.0, 1.0]


ODD = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Share(ClassifierMixin, BaseEstimator):
    def __init__(self, share=0.5):
        self.share = share

    def fit(self, X, y):
        return self

    def HOW(self, X):
        return GIVEN

    if "HOW" != "predict":
        def predict(self, X):
            return np.zeros(len(X))
"""


@pytest.mark.parametrize(
    ("how", "given", "message"),
    [
        ("predict_proba", "np.ones((len(X), 1))", r"Share.predict_proba .*\(\d+, 1\).*two columns"),
        ("predict_proba", "np.ones((len(X), 3))", "Return two columns"),
        ("predict_proba", "np.ones((3, 2))", r"shape \(3, 2\) for 160 rows"),
        ("predict", "np.array(['yes'] * len(X))", "Share.predict gave .*'yes'.* Labels are 0 or 1"),
        ("predict", "[None] * len(X)", r"gave nan for a row. Scores lie in \[0, 1\]"),
        ("predict", "0.5", "one number for each row"),
        ("predict", "np.full(len(X), 2)", "Share.predict gave 2 for a row.* decisions are 0 or 1"),
        ("predict_proba", "np.full((len(X), 2), -0.1)", "gave -0.1 for a row"),
        ("predict", "1 / 0", r"ZeroDivisionError: .*\(Share with {'share': 0.2}\)"),
    ],
)
def test_what_a_classifier_must_give_is_told(write, tmp_path, monkeypatch, how, given, message):
    monkeypatch.delitem(sys.modules, "odd", raising=False)
    code = ODD.replace("HOW", how).replace("GIVEN", given)
    study = write(SHARE.replace("MODULE", "odd"), odd=code)
    study = replace(study, datasets=("small",), loaders={"small": small_table})
    specs = [study.spec(key, "small", 0) for key in ("unfair", "share")]
    how = {"loaders": study.loaders, "methods": study.methods, "jobs": 1}
    (failure,) = run_all(specs, RecordStore(tmp_path / "records"), **how)
    assert re.search(message, failure.error)
    assert "Traceback" in failure.traceback


def test_a_constructor_that_fails_is_told_with_its_error(write):
    code = SPEAKING.replace("self.share = share", "raise KeyError('no licence')")
    with pytest.raises(InputError, match=r"'share': unmakable:Share .*KeyError: 'no licence'"):
        write(SHARE.replace("MODULE", "unmakable"), unmakable=code)


def test_what_a_worker_is_given_names_the_class_only(write):
    study = write(SHARE.replace("MODULE", "named_only"), named_only=SPEAKING)
    method = study.methods["share"]
    assert b"cut_" not in pickle.dumps(method)
    del sys.modules["named_only"]
    assert "named_only" not in sys.modules
    pickle.loads(pickle.dumps(method))
    assert "named_only" not in sys.modules, "it is found when it is used"


def test_changed_code_is_another_run(write):
    text = SHARE.replace("MODULE", "changing")
    first = write(text, changing=SPEAKING).spec("share", "german", 0)
    again = write(text, changing=SPEAKING).spec("share", "german", 0)
    other = write(text, changing=SPEAKING + "\n# better\n").spec("share", "german", 0)
    assert first.digest == again.digest != other.digest
    assert "code" not in write(FOREST).spec("forest", "german", 0).settings


# What cannot be used.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "adds nothing"),
        ("[tables.loans\n", r"cannot be read as TOML: .*line 1"),
        ("x = 1\n", "unknown key 'x'. There are: datasets, tables, methods"),
        ("[table.loans]\n", "unknown key 'table'. Did you mean 'tables'"),
        ("tables = 3\n", r"tables must be written as \[tables.NAME\]"),
        ("[tables]\nloans = 3\n", r"write \[tables.NAME\], with a name"),
        ("[tables.loans]\n", r"\[tables.loans\] lacks file, target, positive, sensitive"),
        ('[tables."../x"]\n', "'../x' must have at most 50 characters: letters"),
        (f"[tables.{'x' * 51}]\n", "at most 50 characters"),
        ("[tables.german]\n", "the name 'german' is taken already"),
        ("[methods.reg]\n", "the name 'reg' is taken already"),
        ("[methods.ftm-joint]\n", "the name 'ftm-joint' is taken already"),
        (LOANS + 'favored = "m"\n', "unknown key 'favored'. Did you mean 'favoured'"),
        (LOANS.replace('"loans.csv"', '"lones.csv"'), "no file .*lones.csv"),
        (LOANS.replace('"loans.csv"', '"loans.xls"'), "is a spreadsheet"),
        (LOANS.replace('"loans.csv"', "3"), "file must be the name of a file, got 3"),
        (LOANS.replace('"yes"', '"Yes"'), "positive must be 'no' or 'yes', got 'Yes'"),
        (LOANS.replace('"yes"', "2020-01-01"), "positive must be text, finite numbers"),
        (LOANS.replace('"yes"', "nan"), "positive must be text, finite numbers"),
        (LOANS, "'id' has 200 different values.*drop"),
        (DROP + 'favoured = "x"\n', "favoured must be 'f' or 'm'"),
        (DROP + "batch_size = 1\n", "batch_size must be from 2 to 200"),
        (DROP + "batch_size = true\n", "batch_size must be a whole number, got True"),
        (DROP.replace('["id"]', '["sex"]'), "must be different columns"),
        (DROP.replace('["id"]', '["id", "income", "owner", "job"]'), "no columns are left"),
        ('datasets = ["lones"]\n' + DROP, "no dataset 'lones'. Did you mean 'loans'"),
        ("datasets = []\n" + DROP, "must name at least one table"),
        ("[methods.mine]\n", "lacks estimator"),
        ('[methods.mine]\nestimator = "sklearn.ensemble"\n', "package.module:Class"),
        ('[methods.mine]\nestimator = "no_such:Thing"\n', "No module named 'no_such'"),
        ('[methods.mine]\nestimator = "fractions:Fraction"\n', "get_params"),
        (
            '[methods.mine]\nestimator = "sklearn.preprocessing:MinMaxScaler"\n',
            "no method 'predict'",
        ),
        (FOREST.replace("n_estimators", "n_trees"), "unexpected keyword argument 'n_trees'"),
        (FOREST + "weights = [1]\n", "together, or neither"),
        (FOREST + 'weights = ["a"]\n', "weights must be numbers, got 'a'"),
        (FOREST + 'weights = [1]\nweight_parameter = "depth"\n', "Invalid parameter 'depth'"),
        (FOREST.replace("= 5", "= inf"), r"forest\]: n_estimators must be text, finite"),
        (DROP.replace('["id"]', "[1]"), r"drop must hold names of columns as text, got 1"),
        (DROP.replace('["id"]', '[["id"]]'), r"drop must hold names of columns as text"),
        (FOREST.replace("random forest", "Reg"), "the label 'Reg' is taken already"),
        (FOREST.replace("random forest", "a\\rb"), "cannot hold '|' or line breaks"),
        (FOREST + 'weight_parameter = "random_state"\nweights = [1]\n', "seed of the split"),
        (FOREST.replace("sklearn.ensemble:", "forests.py:"), "without '.py'"),
    ],
)
def test_files_that_cannot_be_used(write, text, message):
    with pytest.raises(InputError, match=message):
        write(text)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*mine.toml"):
        extend_study(tiny_study(), tmp_path / "mine.toml")
    with pytest.raises(InputError, match="cannot be read"):
        extend_study(tiny_study(), tmp_path)


def test_a_column_that_is_not_there(write):
    with pytest.raises(ColumnError, match=r"no column 'Sex'. Did you mean 'sex'"):
        write(DROP.replace('"sex"', '"Sex"'))


def missing(column):
    return loans().assign(**{column: lambda table: table[column].where(table.index > 2)})


@pytest.mark.parametrize(
    ("table", "kind", "message"),
    [
        (loans(sex="f"), GroupError, r"must have two groups, and has 1 \('f'\)"),
        (
            loans(sex=np.array([*"abc"])[np.arange(200) % 3]),
            GroupError,
            "must have two groups, and has 3",
        ),
        (loans(repaid=np.arange(200)), LabelError, "two labels, and has 200 .*…"),
        (loans(repaid="yes"), LabelError, "two labels, and has 1"),
        (loans(60), GroupError, "20 are needed"),
        (missing("sex"), GroupError, "'sex' lacks 3 values"),
        (missing("repaid"), LabelError, "'repaid' lacks 3 values"),
        (missing("income"), InputError, r"missing values, and how many: 'income' \(3\).*drop"),
        (missing("job"), InputError, r"'job' \(3\)"),
        (loans(income=[np.inf] * 200), InputError, "income.*drop"),
    ],
)
def test_tables_that_cannot_be_used(write, table, kind, message):
    with pytest.raises(kind, match=message):
        write(DROP, table)


def test_a_module_that_fails_is_told_with_its_error(write):
    with pytest.raises(InputError, match=r"NameError.*no_such_name"):
        write(SHARE.replace("MODULE", "failing"), failing="no_such_name\n")


# Methods of any kind.


def test_groups_are_a_column_for_those_who_do_not_ask_for_them():
    method = own_method(
        "forest", "sklearn.ensemble:RandomForestClassifier", settings={"n_estimators": 5}
    )
    problem = small_problem()
    curve = method.fit(problem, {"weights": [0.0]}, 3)
    from sklearn.ensemble import RandomForestClassifier

    split = problem.split
    direct = RandomForestClassifier(5, random_state=3)
    direct.fit(np.column_stack([split.X_train, split.group_train]), split.y_train)
    expected = direct.predict_proba(np.column_stack([split.X_test, 1 - split.group_test]))[:, 1]
    assert np.array_equal(curve.scorers[0](1 - split.group_test), expected)
    assert curve.training_scores[0].shape == split.y_train.shape
    assert curve.coupling is None


def test_groups_are_given_to_those_who_ask_for_them():
    method = own_method(
        "ftm",
        "fairmatch:FTMBoostingClassifier",
        weight_parameter="fairness_weight",
        weights=[0, 50],
        settings={"n_rounds": 5},
    )
    problem = small_problem()
    curve = method.fit(problem, {"weights": [0, 50]}, 0)
    from fairmatch import FTMBoostingClassifier

    split = problem.split
    direct = FTMBoostingClassifier(fairness_weight=50, n_rounds=5, random_state=0)
    direct.fit(split.X_train, split.y_train, sensitive_features=split.group_train)
    expected = direct.predict_proba(split.X_test, sensitive_features=split.group_test)[:, 1]
    assert np.array_equal(curve.scorers[1](split.group_test), expected)
    assert not np.array_equal(curve.scorers[0](split.group_test), expected)


def test_decisions_are_the_scores_of_those_who_give_no_others():
    method = own_method("ridge", "sklearn.linear_model:RidgeClassifier")
    problem = small_problem()
    curve = method.fit(problem, {"weights": [0.0]}, 0)
    scores = curve.scorers[0](problem.split.group_test)
    assert set(scores) == {0.0, 1.0}
    assert np.mean(scores == problem.split.y_test) > 0.6
