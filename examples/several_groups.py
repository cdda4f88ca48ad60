r"""
Several groups and crossed attributes
=====================================

A model can treat women and men alike, and Black and White people alike, and still turn Black women
away. So the attributes are crossed: the groups are all their combinations.
"""

# %%
# Two attributes, six groups
# --------------------------
# ``sensitive_features`` may be a table. Its combinations are the groups. Three races have a few
# dozen people in a cell, so they are put together first: a selection rate of a few dozen people
# is mostly noise. (``small_groups="pool"`` would do the same to every group below a size.)

import matplotlib.pyplot as plt
from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingClassifier
from fairmatch.datasets import load_adult
from fairmatch.measures import gaps_by_pair, selection_rates

adult = load_adult()
race = adult.X["race"].astype(str)
attributes = race.where(race.isin(["White", "Black"]), "other race").to_frame()
attributes["sex"] = adult.sensitive_features
X = adult.X.drop(columns="race")
X, X_test, y, y_test, groups, groups_test = train_test_split(
    X, adult.y, attributes, train_size=12000, random_state=0
)
print(groups.value_counts().to_string())

# %%
# Train
# -----
# Every group is matched with the largest one, and each counts the same, however small it is.

trees = LGBMClassifier(n_estimators=100, n_jobs=1)
plain = FTMBoostingClassifier(trees, fairness_weight=0.0, random_state=0)
fair = FTMBoostingClassifier(trees, fairness_weight=2.0, random_state=0)
rates = {}
for name, model in {"plain": plain, "fair": fair}.items():
    model.fit(X, y, sensitive_features=groups)
    scores = model.predict_proba(X_test, sensitive_features=groups_test)[:, 1]
    rates[name] = selection_rates(y_test, scores, sensitive_features=groups_test)
    accuracy = ((scores >= 0.5) == y_test).mean()
    widest = max(
        gaps_by_pair(y_test, scores, sensitive_features=groups_test), key=lambda p: p.value
    )
    print(f"{name}: accuracy {accuracy:.3f}, largest gap {widest.value:.3f}, "
          f"between {widest.first} and {widest.second}")  # fmt: skip

# %%
# The picture: every group's share of accepted people, before and after.

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
order = sorted(rates["plain"], key=lambda group: rates["plain"][group].rate)
for name, colour in {"plain": "tab:grey", "fair": "tab:orange"}.items():
    axes.plot([rates[name][group].rate for group in order], range(len(order)), "o", color=colour,
              label=name)  # fmt: skip
axes.set_yticks(range(len(order)), [str(group) for group in order])
axes.set(xlabel="share of people who are accepted", xlim=(0, None))
axes.legend()
plt.show()
