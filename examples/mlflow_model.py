r"""
Log a model with MLflow, with its gaps and its card
===================================================

This example logs three versions of a model with MLflow, each with its accuracy, its gap and its
model card, and serves one of them.
"""

# %%
# Three versions
# --------------
# The group is a column of the table, so the served model needs a single table as input.

import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import mlflow
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier, audit
from fairmatch.datasets import load_german

# A folder is enough for this page. Name your server with mlflow.set_tracking_uri("https://…").
folder = Path(tempfile.mkdtemp())
os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
mlflow.set_tracking_uri((folder / "runs").as_uri())

german = load_german()
table = german.X.assign(sex=german.sensitive_features)
train, test = table[:600], table[600:]
logged, measured = {}, {}
for weight in (0.0, 1.0, 5.0):
    trees = LGBMClassifier(n_estimators=60, n_jobs=1)
    model = FTMBoostingClassifier(
        trees, fairness_weight=weight, sensitive_column="sex", random_state=0
    )
    model.fit(train, german.y[:600])
    found = audit(
        model.predict_proba(test)[:, 1],
        sensitive_features=test["sex"],
        y_true=german.y[600:],
        n_resamples=200,
    )
    gap = found.gap("mean_parity_gap")
    measured[weight] = model.score(test, german.y[600:]), gap
    with mlflow.start_run():
        mlflow.log_param("fairness_weight", weight)
        mlflow.log_metrics({"accuracy": measured[weight][0], gap.name: gap.value})
        mlflow.log_text(found.to_card(), "README.md")
        logged[weight] = mlflow.pyfunc.log_model(
            name="model",
            loader_module="fairmatch.learning.deploy",
            data_path=str(model.save(folder / f"model-{weight:g}")),
            pip_requirements=["fairmatch[boost]"],
        )

# %%
# Serve one of them
# -----------------
# MLflow loads the folder that ``save`` wrote. Nothing is unpickled.

served = mlflow.pyfunc.load_model(logged[1.0].model_uri)
print(served.predict(test.head()))

# %%
# The gaps of the versions, with their intervals:

weights = list(measured)
gaps = [measured[weight][1] for weight in weights]
plt.errorbar(
    [measured[weight][0] for weight in weights],
    [gap.value for gap in gaps],
    yerr=[[gap.value - gap.low for gap in gaps], [gap.high - gap.value for gap in gaps]],
    fmt="o",
)
for weight, gap in zip(weights, gaps, strict=True):
    plt.annotate(f"  weight {weight:g}", (measured[weight][0], gap.value))
plt.xlabel("accuracy")
_ = plt.ylabel("gap of mean scores")
