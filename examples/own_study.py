r"""
Your own study
==============

You can run the paper's experiments on your own table and with your own classifier. All methods use
the same splits and measures, and an interrupted study continues from its records. You describe the
study in a short TOML file. ``python -m paper run --spec`` runs it from the command line; this
example runs it from Python.
"""

# %%
# A table and a method
# --------------------
# The table is simulated. The method is ``ShiftedLogistic`` in ``shifting.py``, next to this
# example: a logistic regression whose log-odds are shifted by group. ``shift`` trades accuracy for
# fairness.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from paper.custom import extend_study
from paper.records import RecordStore
from paper.runs import run_all, study_tasks
from paper.specs import FULL, Study

folder = Path(tempfile.mkdtemp())
generator = np.random.default_rng(0)
n = 2000
sex = generator.choice(["f", "m"], n)
income = generator.gamma(3.0, 1.0, n) + 0.8 * (sex == "m")
debt = generator.gamma(2.0, 1.0, n)
repaid = generator.random(n) < 1 / (1 + np.exp(debt - income))
pd.DataFrame(
    {"income": income, "debt": debt, "sex": sex, "repaid": np.where(repaid, "yes", "no")}
).to_csv(folder / "loans.csv", index=False)

(folder / "study.toml").write_text(
    """
datasets = ["loans"]

[tables.loans]
file = "loans.csv"
target = "repaid"
positive = "yes"
sensitive = "sex"

[methods.shifted]
estimator = "shifting:ShiftedLogistic"
weight_parameter = "shift"
weights = [0.0, 0.25, 0.5, 0.75, 1.0]
"""
)

# %%
# Run
# ---
# The study has two random splits of our table. It includes two unconstrained models, with which the
# others are compared. Recorded runs are skipped.

study = extend_study(Study.of(FULL, n_seeds=2), folder / "study.toml")
methods = ["unfair", "shifted", "trees-unfair", "trees-ftm"]
specs = [study.spec(method, "loans", seed=seed) for method in methods for seed in range(2)]
store = RecordStore(folder / "records")
failures = run_all(study_tasks(study, specs), store, jobs=1)
print(f"{len(list(store))} runs recorded, {len(failures)} failed")

# %%
# Read the records
# ----------------

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
colours = {"shifted": "tab:blue", "trees-ftm": "tab:orange"}
for record in store:
    if record.spec.method not in colours:
        continue
    colour = colours[record.spec.method]
    axes.plot(record.curve["mean_parity_gap"], record.curve["accuracy"], "o-", color=colour,
              alpha=0.6, label=record.spec.method if record.spec.seed == 0 else None)  # fmt: skip
axes.set(xlabel="gap of mean scores (Δ‾DP)", ylabel="accuracy", xlim=(0, None))
axes.legend()
plt.show()
