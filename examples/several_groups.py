r"""
Several groups and crossed attributes
=====================================

A model can accept women and men equally often, and Black and White people equally often, and still
reject Black women. To detect this, attributes are crossed: the groups are their combinations.
"""

# %%
# Two attributes, six groups
# --------------------------
# ``sensitive_features`` can be a table; the groups are the combinations of its columns. Three races
# have only a few dozen people, and selection rates of so few people are mostly noise. They are
# therefore combined first. (``small_groups="pool"`` combines all groups below a given size.)

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
# Every group is matched with the largest one. All groups have the same weight, whatever their size.

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
# The figure shows the selection rate of every group for both models.

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
order = sorted(rates["plain"], key=lambda group: rates["plain"][group].rate)
for name, colour in {"plain": "tab:grey", "fair": "tab:orange"}.items():
    axes.plot([rates[name][group].rate for group in order], range(len(order)), "o", color=colour,
              label=name)  # fmt: skip
axes.set_yticks(range(len(order)), [str(group) for group in order])
axes.set(xlabel="share of people who are accepted", xlim=(0, None))
axes.legend()
plt.show()
