"""Pages of audits whose truth is known, to see which sentences they hold."""

import html
import re

import numpy as np
import pandas as pd
from audited import planted_model

from fairmatch import (
    audit,
    bands,
    compare_models,
    find_alternatives,
    group_probabilities,
)
from fairmatch.auditing.files import audit_files
from fairmatch.people.roles import Roles
from fairmatch.report import write_report

QUICK = {"n_resamples": 100, "n_subsets": 20}
CURVE = pd.DataFrame(
    {
        "fairness_weight": [0.0, 1.0],
        "accuracy": [0.8, 0.7],
        "demographic_parity_gap": [0.2, 0.1],
    }
)


def people(letters="ab", n=80, columns=("x", "pay_grade")):
    """Scores, groups, features and labels; everybody has a twin in every group."""
    generator = np.random.default_rng(0)
    twins = {name: np.tile(generator.uniform(size=n), len(letters)) for name in columns}
    group = np.repeat(list(letters), n)
    scores = np.tile(generator.uniform(size=n), len(letters))
    labels = (np.arange(len(group)) % 3 == 0).astype(int)
    return scores, group, pd.DataFrame(twins), labels


def planted():
    """An audit of a model that is fair but for people above 60 who are not married."""
    scores, group, X = planted_model(1200, effect=0.5)
    return audit(scores, sensitive_features=group, X=X, **QUICK)


def table_file(folder):
    """An audit of a file, whose columns have roles."""
    scores, group, X, _ = people()
    X.assign(score=scores, group=group).to_csv(folder / "people.csv", index=False)
    roles = Roles(scores=["score"], sensitive="group")
    return audit_files([folder / "people.csv"], roles, **QUICK)


def made(folder):
    """Audits by name."""
    scores, group, X, y = people()
    three, letters, more, truth = people("abc")
    crossed = pd.DataFrame({"sex": letters, "age": np.where(np.arange(240) % 2, "old", "young")})
    unknown = np.where(np.arange(160) < 40, None, group)
    named = {"sensitive_features": group, **QUICK}
    tied = np.ceil(10 * scores) / 10
    hours = {"sensitive_features": group, "kind": "number", "X": X, **QUICK}
    models = {"one": scores, "other": 1.0 - scores}
    generator = np.random.default_rng(1)
    places = np.resize(["a", "b", "c"], len(group))
    classes = generator.dirichlet(np.ones(3), size=len(group))
    kinds = np.resize(list("vwxyz"), len(group))
    tables = [
        pd.DataFrame(generator.dirichlet(np.ones(5), size=len(group)), columns=list("vwxyz"))
        for _ in range(2)
    ]
    return {
        "two": audit(scores, X=X, y_true=y, **named),
        "bare": audit(scores, **named),
        "three": audit(three, sensitive_features=letters, X=more, y_true=truth, **QUICK),
        "crossed": audit(three, sensitive_features=crossed, X=more, **QUICK),
        "real": audit(40 + 9 * scores, y_true=40 + 8 * scores, **hours),
        "decided": audit((scores > 0.5).astype(int), X=X, **named),
        "nobody": audit(scores / 3, X=X, **named),
        "deciles": audit(tied, X=X, **named),
        "low": audit(scores, X=X, y_true=y, favourable="low", **named),
        "survey": audit(scores, sample_weight=1.0 + np.arange(160) % 2 / 2, X=X, **named),
        "unknown": audit(scores, sensitive_features=unknown, X=X, **QUICK),
        "few": audit(scores, sensitive_features=np.repeat(["a", "b"], [9, 151]), X=X, **QUICK),
        "sampled": audit(scores, X=X, n_sample=50, **named),
        "same": audit(scores, X=pd.DataFrame({"x": np.zeros(160)}), **named),
        "tiny": audit(
            np.append(three, [0.4, 0.6]),
            sensitive_features=np.append(letters, ["d", "d"]),
            X=pd.concat([more, more[:2]]),
            n_sample=50,
            **QUICK,
        ),
        "given": audit(scores, X=X, given=np.arange(160) % 2, similarity={"x": 1.0}, **named),
        "bands": audit(scores, sensitive_features=bands(20.0 + np.arange(160), [90]), **QUICK),
        "estimated": audit(
            scores,
            sensitive_features=group_probabilities(pd.DataFrame({"a": X["x"], "b": 1.0 - X["x"]})),
            known=np.where(np.arange(160) % 2, group, None),
            **QUICK,
        ),
        "planted": planted(),
        "file": table_file(folder),
        "predicted": compare_models({"one": 40 + 9 * scores, "other": 50 - 9 * scores}, **hours),
        "compared": compare_models(models, X=X, y_true=y, privileged="b", **named),
        "periods": audit(
            three,
            y_true=truth,
            by=np.tile(np.repeat([2024, 2025], 40), 3),
            min_group_size=10,
            sensitive_features=letters,
            **QUICK,
        ),
        "stages": audit(
            stages={"seen": np.ones(160), "hired": (scores > 0.5).astype(int)}, **named
        ),
        "ordered": compare_models(
            {"one": classes, "same": classes},
            y_true=places[::-1],
            classes=[*places[:3]],
            favourable=["b"],
            **named,
            min_group_size=10,
        ),
        "nominal": compare_models(
            {"one": tables[0], "other": tables[1]},
            y_true=kinds,
            favourable=["v", "w"],
            **named,
            min_group_size=10,
        ),
        "alternatives": compare_models(models, X=X, y_true=y, **named),
    }


def page_text(found, name, folder):
    """Text of the page of one of the audits, without scripts and signs of markup."""
    options = {}
    if name == "compared":
        options["curve"] = CURVE
    if name == "alternatives":
        scores, group, _, y = people()
        options["alternatives"] = find_alternatives(
            {"one": scores, "other": 1.0 - scores}, y_true=y, sensitive_features=group
        )
    options["individuals"] = name != "bare"
    options["hide"] = ["pay_grade"] if name == "two" else []
    text = write_report(found, folder / f"{name}.html", **options).read_text("utf-8")
    body = re.sub(r"<script.*", "", text[text.index("<body>") :], flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))
