r"""
Predicting a number
===================

Wages, prices and waiting times are numbers, not decisions. Fair regressors give matched people
similar predictions, and gaps are in units of the target.
"""

# %%
# Hours of work
# -------------
# The model predicts how many hours a week a person works. In this table men work more hours than
# women.

import matplotlib.pyplot as plt
from lightgbm import LGBMRegressor
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingRegressor
from fairmatch.datasets import load_adult

adult = load_adult()
X, hours = adult.X.drop(columns="hours_per_week"), adult.X["hours_per_week"]
X, X_test, y, y_test, sex, sex_test = train_test_split(
    X, hours, adult.sensitive_features, train_size=12000, random_state=0
)

# %%
# ``max_gap=1.0`` asks for mean predictions for women and men that differ by at most one hour on
# held-out rows.

model = FTMBoostingRegressor(
    LGBMRegressor(n_estimators=100, n_jobs=1),
    max_gap=1.0,
    fairness_weight=[0.0, 0.1, 0.3, 0.6, 1.0, 2.0],
    random_state=0,
)
model.fit(X, y, sensitive_features=sex)
print("weight kept:", model.fairness_weight_)

# %%
# All candidate models, measured on held-out people:

curve = model.path_.curve(X_test, y_test, sensitive_features=sex_test)
curve[["fairness_weight", "rmse", "mean_parity_gap", "wasserstein_parity_gap"]].round(2)

# %%
# A small gap costs little here, because hours are hard to predict.

plain = model.path_.models[0].predict(X_test, sensitive_features=sex_test)
fair = model.predict(X_test, sensitive_features=sex_test)
figure, panels = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained", sharey=True)
for axes, (name, predicted) in zip(panels, {"plain": plain, "fair": fair}.items(), strict=True):
    for group in ("female", "male"):
        axes.hist(predicted[(sex_test == group).to_numpy()], bins=40, range=(15, 60), density=True,
                  alpha=0.5, label=group)  # fmt: skip
    axes.set(title=name, xlabel="predicted hours a week")
panels[0].set_ylabel("density")
panels[0].legend()
plt.show()
