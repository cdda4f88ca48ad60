r"""
A first classifier
==================

A network predicts who earns more than $50,000. It accepts men far more often than women. A second
network is trained on the same rows to treat similar women and men alike.

fairmatch matches the women and men in the table so that partners are as similar as possible
(optimal transport). It then adds a penalty to the loss: the mean difference between the scores of
matched people.
"""

# %%
# The table
# ---------
# Adult is part of the package. We take 6,000 people to learn from, so that this page builds
# quickly, and 10,000 others to look at the result.

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from fairmatch import FTMClassifier, NeuralNetwork
from fairmatch.datasets import load_adult
from fairmatch.measures import gap_table, selection_rates

adult = load_adult()
X, X_test, y, y_test, sex, sex_test = train_test_split(
    adult.X, adult.y, adult.sensitive_features, train_size=6000, test_size=10000, random_state=0
)
X.head(3)

# %%
# Two networks
# ------------
# ``fairness_weight`` is the weight of the penalty: with 0, only accuracy counts. Text columns and
# numbers need no preparation.

network = NeuralNetwork(epochs=40, learning_rate=0.003, decay=0.9)
models = {
    "plain network": FTMClassifier(network, fairness_weight=0.0, random_state=0),
    "fair network": FTMClassifier(network, fairness_weight=1.0, random_state=0),
}
for model in models.values():
    model.fit(X, y, sensitive_features=sex)

# %%
# Results
# -------
# The numbers are for 10,000 held-out people. The gap is the difference between the selection rates
# of women and men.

scores = {
    name: model.predict_proba(X_test, sensitive_features=sex_test)[:, 1]
    for name, model in models.items()
}
for name, score in scores.items():
    gaps = gap_table(y_test, score, sensitive_features=sex_test)
    accuracy = ((score >= 0.5) == y_test).mean()
    print(f"{name}: accuracy {accuracy:.3f}, gap {gaps['demographic_parity_gap']:.3f}")

# %%
# The gap shrinks, at some cost in accuracy. ``max_gap`` chooses the weight for a given gap: see
# :ref:`the next example <sphx_glr_gallery_trees_with_a_bound.py>`.

figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
for place, score in enumerate(scores.values()):
    rates = selection_rates(y_test, score, sensitive_features=sex_test)
    axes.plot([found.rate for found in rates.values()], [place, place], color="lightgrey", zorder=0)
    for (group, found), colour in zip(rates.items(), ("tab:orange", "tab:blue"), strict=True):
        axes.scatter(found.rate, place, s=90, color=colour, label=group if place == 0 else None)
axes.set(yticks=[0, 1], yticklabels=list(scores), ylim=(-0.5, 1.5), xlim=(0, None))
axes.set_xlabel("share of people who are accepted")
axes.legend(loc="upper right")
plt.show()
