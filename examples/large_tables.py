r"""
Large tables
============

This example shows how long each step takes and which steps use a sample. The simulated table has
300,000 people and 12 columns.
"""

# %%
# A large table
# -------------

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier, audit, fair_matching
from fairmatch.measures import gap_table

generator = np.random.default_rng(0)
n = 300_000
group = generator.choice(["a", "b"], n, p=[0.7, 0.3])
X = pd.DataFrame(generator.normal(size=(n, 10)), columns=[f"x{k}" for k in range(10)])
X["x0"] += 0.6 * (group == "a")
X["region"] = pd.Categorical(generator.choice(list("pqrst"), n))
X["kind"] = pd.Categorical(generator.choice(["new", "old"], n))
odds = X["x0"] + 0.5 * X["x1"] * X["x2"] + 0.7 * (X["kind"] == "old") - 0.5
y = (generator.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
seconds = {}


def timed(what, action):
    """Run an action, and note how long it takes."""
    start = time.perf_counter()
    result = action()
    seconds[what] = time.perf_counter() - start
    return result


# %%
# Measure and match
# -----------------
# Gaps and the matching of scores only need sorting, which takes seconds for millions of rows.

scores = np.clip(0.3 + 0.15 * X["x0"].to_numpy(), 0, 1)
gaps = timed("every gap", lambda: gap_table(y, scores, sensitive_features=group))
pairs = timed("fair_matching", lambda: fair_matching(scores, group))
print({name: round(gap, 3) for name, gap in gaps.items()})
print(pairs)

# %%
# Train
# -----
# Optimal transport of all rows would take long, so a sample of ``match_rows`` people per group is
# matched. The penalty uses the sample; the loss uses all rows.

trees = LGBMClassifier(n_estimators=50, n_jobs=1)
model = FTMBoostingClassifier(trees, fairness_weight=1.0, match_rows=5_000, random_state=0)
timed("train 50 trees", lambda: model.fit(X, y, sensitive_features=group))
fair = model.predict_proba(X, sensitive_features=group)[:, 1]
after = gap_table(y, fair, sensitive_features=group)
print(
    f"gap {gaps['demographic_parity_gap']:.3f} before, {after['demographic_parity_gap']:.3f} after"
)

# %%
# Audit
# -----
# Gaps and intervals use all rows. Matching uses a sample. The subset search uses half of the rows
# and confirms its findings on the other half.

found = timed("audit", lambda: audit(fair, sensitive_features=group, X=X, n_sample=1000))
print(found)

# %%
# The times were measured on the machine that built this page, with one thread.

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
axes.barh(list(seconds), list(seconds.values()), color="tab:blue")
axes.invert_yaxis()
axes.set_xlabel("seconds, for 300,000 rows")
plt.show()
