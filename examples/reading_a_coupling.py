r"""
Reading a coupling
==================

A coupling is a list of pairs of people from different groups, each with a mass. This example
computes three couplings of the same people and compares them.
"""

# %%
# Three ways to match
# -------------------
# The scores are those of a logistic regression on 200 held-out applicants.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LogisticRegression

from fairmatch import OptimalTransportMatcher, fair_matching, nearest_fair_matching
from fairmatch.datasets import load_german, paper_split

split = paper_split(load_german(), seed=0)
model = LogisticRegression(max_iter=2000).fit(split.X_train, split.y_train)
X, sex = split.X_test, split.sensitive_features_test
scores = model.predict_proba(X)[:, 1]

couplings = {
    # The most similar people, whatever their scores.
    "nearest": OptimalTransportMatcher().match(X, sex),
    # People at the same rank of their group, whom the model treats alike.
    "same rank": fair_matching(scores, sex, X=X),
    # Of all matchings with the same small score gap, the one that pairs the most similar people.
    "nearest of the fair": nearest_fair_matching(scores, sex, X),
}

# %%
# Contents of a coupling
# ----------------------
# Its pairs are row positions, and their masses sum to 1.

nearest = couplings["nearest"]
print(nearest)
pairs = pd.DataFrame(
    {"source": nearest.source_index, "target": nearest.target_index, "mass": nearest.mass}
)
pairs.head(3)

# %%
# One person's partners, sorted by mass:

rows, shares = nearest.counterparts(int(nearest.source_index[0]))
print(rows, shares.round(2))

# %%
# Two numbers summarise a coupling: the mean score difference of matched people, and their mean
# squared distance (the transport cost).

for name, coupling in couplings.items():
    print(f"{name:20} score gap {coupling.gap(scores):.3f}, "
          f"transport cost {coupling.transport_cost(X):.2f}")  # fmt: skip

# %%
# The most similar people get quite different scores. People at the same rank get nearly the same
# scores, but are quite different. The third coupling has the same score gap as the second and pairs
# more similar people.
#
# The solver proves its result: no coupling costs less than this bound.

print(nearest.certificate)

# %%
# Figure
# ------
# Every line joins the scores of two matched people. Vertical lines join people with equal scores.

figure, panels = plt.subplots(1, 3, figsize=(8, 3), layout="constrained", sharey=True)
for axes, (name, coupling) in zip(panels, couplings.items(), strict=True):
    for i, j, mass in zip(coupling.source_index, coupling.target_index, coupling.mass, strict=True):
        axes.plot(scores[[i, j]], [0, 1], color="grey", alpha=min(1.0, 60 * mass), linewidth=0.7)
    for place, group in enumerate(coupling.groups):
        members = sex == group
        axes.plot(scores[members], [place] * members.sum(), "|", markersize=9, color=f"C{place}")
    axes.set(title=name, xlabel="score", yticks=[0, 1], yticklabels=coupling.groups)
plt.show()
