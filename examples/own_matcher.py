r"""
Your own matcher
================

A matcher decides which people should be treated alike. To use your own rule, write a class with one
method. fairmatch handles several groups, classes and the training.
"""

# %%
# One method
# ----------
# This matcher compares applicants only by the amount and the duration of the loan. It gets the
# encoded rows of two groups at a time and returns a coupling of them. Sorting by one number and
# matching equal ranks is optimal transport in one dimension, which ``fair_matching`` does.

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier, fair_matching
from fairmatch.datasets import load_german
from fairmatch.people.encoding import TableEncoder

german = load_german()
sex = german.sensitive_features
columns = list(TableEncoder().fit(german.X).get_feature_names_out())
where = [columns.index("credit_amount"), columns.index("duration_months")]


class MatchByLoan:
    """Match applicants who ask for a similar amount and duration."""

    def match(self, X, sensitive_features, y=None, *, sample_weight=None):
        asked = np.asarray(X)[:, where].mean(axis=1)
        return fair_matching(asked, sensitive_features, sample_weight=sample_weight)


# %%
# Train with it
# -------------

trees = LGBMClassifier(n_estimators=100, verbose=-1)
settings = {"fairness_weight": 2.0, "random_state": 0}
models = {
    "nearest in everything": FTMBoostingClassifier(trees, transport="marginal", **settings),
    "same loan": FTMBoostingClassifier(trees, transport=MatchByLoan(), **settings),
}
numbers = TableEncoder().fit_transform(german.X)
own = MatchByLoan().match(numbers, sex)
scores = {}
for name, model in models.items():
    model.fit(german.X, german.y, sensitive_features=sex)
    scores[name] = model.predict_proba(german.X, sensitive_features=sex)[:, 1]
    print(f"{name}: mean score gap of people with the same loan {own.gap(scores[name]):.3f}")

# %%
# The second model gives similar scores to people with the same loan. The first model was trained on
# other pairs, so its gap between people with the same loan is larger.

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, found in scores.items():
    axes.hist(own.gaps(found), bins=30, range=(0, 0.6), weights=own.mass, histtype="step",
              linewidth=2, label=name)  # fmt: skip
axes.set(xlabel="score gap of two applicants with the same loan", ylabel="share of the pairs")
axes.legend(title="trained on pairs")
plt.show()
