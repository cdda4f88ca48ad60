"""Audit two models of German credit that know nothing of fairmatch, and write the report.

Run with ``python examples/audit_german.py [FILE.html]``.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairmatch import compare_models
from fairmatch.datasets import load_german, paper_split
from fairmatch.report import sentences, write_report
from fairmatch.tables.encoder import TableEncoder


def main(path: Path) -> None:
    german = load_german()
    train = paper_split(german, seed=0).train_index
    features = TableEncoder().fit_transform(german.X)
    y = np.asarray(german.y)
    scores = {}
    for name, X in (
        ("logistic regression", np.column_stack([features, german.group])),
        ("the same without sex", features),
    ):
        model = LogisticRegression(max_iter=2000).fit(X[train], y[train])
        scores[name] = model.predict_proba(X)[:, 1]
    # Everybody is audited, the rows of training too: with 200 test rows most gaps would be noise.
    found = compare_models(
        scores,
        sensitive_features=german.sensitive_features,
        X=german.X,
        y_true=y,
        privileged="male",
    )
    write_report(found, path, title="German credit: does it matter to know the sex?")
    for audit in found.audits:
        print(f"\n{audit.model_name}")
        for sentence in sentences(audit):
            print(f"- {sentence}")
    print(f"\nReport: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "german.html"))
