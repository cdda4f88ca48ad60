r"""
Making an existing model fair
=============================

You have a model: a scikit-learn classifier, a pipeline, XGBoost. There are two ways to make it fair
without replacing it.
"""

# %%
# The model
# ---------

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from fairmatch import MatchSmoothingClassifier, QuantileAlignmentClassifier, fair_matching
from fairmatch.datasets import load_adult
from fairmatch.measures import gap_table
from fairmatch.people.encoding import TableEncoder

adult = load_adult()
X, X_test, y, y_test, sex, sex_test = train_test_split(
    adult.X, adult.y, adult.sensitive_features, train_size=12000, test_size=6000, random_state=0
)
codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
existing = make_pipeline(
    make_column_transformer(
        (codes, make_column_selector(dtype_exclude="number")), remainder="passthrough"
    ),
    HistGradientBoostingClassifier(max_iter=60, random_state=0),
)

# %%
# Two wrappers
# ------------
# *Alignment* moves the scores of each group to one common distribution. People keep their order
# within a group. It needs the group at prediction. *Smoothing* changes the training targets: the
# scores of matched people are moved towards each other, and the model is trained on the result.

models = {
    "as it is": existing,
    "aligned": QuantileAlignmentClassifier(existing, random_state=0),
    "half aligned": QuantileAlignmentClassifier(existing, strength=0.5, random_state=0),
    "smoothed": MatchSmoothingClassifier(existing, random_state=0),
}
numbers = TableEncoder().fit(adult.X).transform(X_test)
found = {}
for name, model in models.items():
    if model is existing:
        model.fit(X, y)
        scores = model.predict_proba(X_test)[:, 1]
    else:
        model.fit(X, y, sensitive_features=sex)
        scores = model.predict_proba(X_test, sensitive_features=sex_test)[:, 1]
    accuracy = ((scores >= 0.5) == y_test).mean()
    gap = gap_table(y_test, scores, sensitive_features=sex_test)["demographic_parity_gap"]
    cost = fair_matching(scores, sex_test).transport_cost(numbers)
    found[name] = accuracy, gap
    print(f"{name:13} accuracy {accuracy:.3f}, gap {gap:.3f}, transport cost {cost:.2f}")

# %%
# The transport cost is the mean squared distance between people whom the model treats alike.

figure, axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
for name, (accuracy, gap) in found.items():
    axes.plot(gap, accuracy, "o", markersize=9)
    axes.annotate(name, (gap, accuracy), (6, 6), textcoords="offset points")
axes.set(xlabel="gap of selection rates (ΔDP)", ylabel="accuracy", xlim=(0, None))
axes.margins(0.2)
plt.show()
