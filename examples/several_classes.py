r"""
Three classes in order
======================

This example predicts education in three ordered bands from the other columns of Adult. It compares
plain trees, the same trees with offsets by group, and a fair model.
"""

# %%
# Three bands
# -----------
# ``classes=[...]`` gives the order of the bands, and ``favourable=[...]`` names the favourable
# ones.

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingClassifier, QuantileAlignmentClassifier, audit
from fairmatch.datasets import load_adult
from fairmatch.measures import demographic_parity_gap, gaps_by_class

BANDS = ["1 school", "2 some college", "3 degree"]
adult = load_adult()
years = adult.X["education_num"].to_numpy()
bands = np.array(BANDS)[np.searchsorted([10, 13], years, side="right")]
X = adult.X.drop(columns=["education_num", "education"], errors="ignore")
X, X_test, y, y_test, sex, sex_test = train_test_split(
    X, bands, adult.sensitive_features, train_size=10000, test_size=6000, random_state=0
)

# %%
# Three models
# ------------
# *Offsets* are added to the class probabilities of each sex after training. *FTM* trains the trees
# to treat matched people alike.

trees = LGBMClassifier(n_estimators=60, n_jobs=1, verbose=-1)
models = {
    "plain": FTMBoostingClassifier(trees, fairness_weight=0.0, random_state=0),
    "offsets": QuantileAlignmentClassifier(
        trees, decisions="threshold", max_gap=0.05, cv=2, validation_size=0.3, random_state=0
    ),
    "FTM": FTMBoostingClassifier(
        trees, fairness_weight=[0.0, 1.0, 4.0], max_gap=0.05, validation_size=0.3, random_state=0
    ),
}
scores = {}
for name, model in models.items():
    model.fit(X, y, sensitive_features=sex)
    scores[name] = model.predict_proba(X_test, sensitive_features=sex_test)
    gap = demographic_parity_gap(None, scores[name], sensitive_features=sex_test)
    accuracy = np.mean(model.predict(X_test, sensitive_features=sex_test) == y_test)
    print(f"{name}: accuracy {accuracy:.3f}, gap {gap:.3f}")

# %%
# Each class has a confidence interval, and all intervals hold at once.

for row in gaps_by_class(None, scores["plain"], sensitive_features=sex_test, classes=BANDS):
    print(f"{row.decided}: {row.first} {row.rates[0]:.3f}, {row.second} {row.rates[1]:.3f}, "
          f"difference {row.low:+.3f} to {row.high:+.3f}")  # fmt: skip

# %%
# The audit has the class shares and the confusion matrix of every group, and the gaps over all
# classes.

found = audit(scores["plain"], sensitive_features=sex_test, y_true=y_test, classes=BANDS,
              favourable=["3 degree"], n_resamples=200)  # fmt: skip
for gap in found.classes.gaps:
    print(f"{gap.name}: {gap.value:.3f} [{gap.low:.3f}, {gap.high:.3f}]")

# %%
# The figure shows the predicted bands by model and sex.

figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
rows = [(name, group) for name in models for group in sorted(set(sex_test))]
left = np.zeros(len(rows))
for band, label in enumerate(BANDS):
    shares = [
        np.mean(scores[name][(sex_test == group).to_numpy()].argmax(axis=1) == band)
        for name, group in rows
    ]
    axes.barh([f"{name}, {group}" for name, group in rows], shares, left=left, label=label)
    left += shares
axes.invert_yaxis()
axes.set_xlabel("share of the group")
axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=3, frameon=False)
plt.show()
