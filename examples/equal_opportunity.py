r"""
Equal opportunity
=================

If you trust the label, you can require less than equal selection rates: people with a positive
label should be accepted equally often in every group. This is equal opportunity. The model then
compares only people with a positive label.
"""

# %%
# Three criteria, one parameter
# -----------------------------

import matplotlib.pyplot as plt
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingClassifier
from fairmatch.datasets import load_adult
from fairmatch.measures import gap_table

adult = load_adult()
X, X_test, y, y_test, sex, sex_test = train_test_split(
    adult.X, adult.y, adult.sensitive_features, train_size=12000, random_state=0
)
measured = {}
for criterion in ("plain", "demographic_parity", "equal_opportunity", "equalized_odds"):
    model = FTMBoostingClassifier(
        LGBMClassifier(n_estimators=100, n_jobs=1),
        fairness_weight=0.0 if criterion == "plain" else 0.5,
        criterion="demographic_parity" if criterion == "plain" else criterion,
        random_state=0,
    )
    model.fit(X, y, sensitive_features=sex)
    scores = model.predict_proba(X_test, sensitive_features=sex_test)[:, 1]
    gaps = gap_table(y_test, scores, sensitive_features=sex_test)
    measured[criterion] = {
        "accuracy": ((scores >= 0.5) == y_test).mean(),
        "ΔDP": gaps["demographic_parity_gap"],
        "ΔTPR": gaps["true_positive_gap"],
        "ΔFPR": gaps["false_positive_gap"],
    }
table = pd.DataFrame(measured).T
table.round(3)

# %%
# Demographic parity closes most of ΔDP, but ΔTPR grows. Equal opportunity and equalized odds reduce
# ΔTPR, but most of ΔDP remains. If the groups' base rates differ, no model that uses the label has
# both equal selection rates and equal error rates.

axes = table[["ΔDP", "ΔTPR", "ΔFPR"]].plot.barh(figsize=(6.5, 3.6))
axes.invert_yaxis()
axes.set_xlabel("gap between women and men")
axes.figure.set_layout_engine("constrained")
plt.show()
