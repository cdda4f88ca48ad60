r"""
Trees with a bound on the gap
=============================

Boosted trees accept tables as they are, with categories and missing values. ``max_gap`` bounds the
gap between the groups, and ``fit`` chooses the fairness weight.
"""

# %%
# The table
# ---------
# It needs no preparation.

import matplotlib.pyplot as plt
from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingClassifier
from fairmatch.datasets import load_adult
from fairmatch.measures import demographic_parity_gap

adult = load_adult()
X, X_test, y, y_test, sex, sex_test = train_test_split(
    adult.X, adult.y, adult.sensitive_features, train_size=12000, random_state=0
)

# %%
# Train
# -----
# A fifth of the rows is held out, and models with different weights are trained on the rest. Among
# the models with a gap of at most 0.05 on the held-out rows, ``fit`` keeps an accurate one. People
# are matched on their features and on a predicted score, which costs little accuracy.

model = FTMBoostingClassifier(
    LGBMClassifier(n_estimators=100, n_jobs=1),
    max_gap=0.05,
    fairness_weight=[0.0, 0.1, 0.2, 0.5, 1.0, 2.0],
    random_state=0,
)
model.fit(X, y, sensitive_features=sex)
print("weight kept:", model.fairness_weight_)

# %%
# ``path_`` has all candidate models. The table shows them on held-out people.

curve = model.path_.curve(X_test, y_test, sensitive_features=sex_test)
columns = ["fairness_weight", "accuracy", "demographic_parity_gap", "wasserstein_parity_gap"]
curve[columns].round(3)

# %%
# Figure
# ------
# For new people the bound holds approximately. The more people of each group were held out, the
# more precisely it holds.

scores = model.predict_proba(X_test, sensitive_features=sex_test)[:, 1]
gap = demographic_parity_gap(y_test, scores, sensitive_features=sex_test)
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.plot(curve["demographic_parity_gap"], curve["accuracy"], "o-", color="tab:blue")
kept = curve[curve["fairness_weight"] == model.fairness_weight_].iloc[0]
axes.plot(gap, kept["accuracy"], "o", markersize=12, color="tab:orange", label="the model kept")
axes.axvline(0.05, color="grey", linestyle=":", label="the bound")
axes.set(xlabel="gap of selection rates (ΔDP)", ylabel="accuracy", xlim=(0, None))
axes.legend(loc="lower right")
plt.show()
