r"""
Tutorial: from a table to a fair model and a filed report
=========================================================

This tutorial covers a complete project on a public table: load the data, audit a model, train a
fair one, compare the two, explain one decision, and write a report to file. Download it as a
notebook at the end of this page. It runs in about a minute.
"""

# %%
# 1. Load the table
# -----------------
# Adult is part of the package. Each row is a person, and the label says whether the person earns
# more than $50,000 a year. We use 9,000 people for training and 6,000 others for the audit.

import matplotlib.pyplot as plt
from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

import fairmatch
from fairmatch import FTMBoostingClassifier, audit, compare_models, explain
from fairmatch.datasets import load_adult
from fairmatch.report import sentences, write_filing, write_report

adult = load_adult()
X, X_test, y, y_test, sex, sex_test = train_test_split(
    adult.X, adult.y, adult.sensitive_features, train_size=9000, test_size=6000, random_state=0
)
X.head(3)

# %%
# 2. Audit a plain model
# ----------------------
# ``fairness_weight=0.0`` trains ordinary LightGBM trees. The audit takes the scores of any model;
# with ``X`` and ``y_true`` it also looks for subsets and computes error rates.

trees = LGBMClassifier(n_estimators=50, n_jobs=1)
plain = FTMBoostingClassifier(trees, fairness_weight=0.0, random_state=0)
plain.fit(X, y, sensitive_features=sex)
scores = plain.predict_proba(X_test, sensitive_features=sex_test)[:, 1]
found = audit(
    scores, sensitive_features=sex_test, X=X_test, y_true=y_test, n_sample=1000, model_name="plain"
)
for group in found.groups:
    rate = group.selection_rate
    print(
        f"{group.label}: {rate.value:.1%} selected, 95% interval {rate.low:.1%} to {rate.high:.1%}"
    )
print(sentences(found)[0])

# %%
# The impact ratio is below 0.8, so the model fails the four-fifths rule.
#
# 3. Train a fair model
# ---------------------
# ``max_gap=0.05`` bounds the difference of the selection rates on held-out rows. ``fit`` tries
# several fairness weights and keeps an accurate model within the bound.

fair = FTMBoostingClassifier(trees, max_gap=0.05, random_state=0)
fair.fit(X, y, sensitive_features=sex)
print("fairness weight:", fair.fairness_weight_)

# %%
# 4. Compare the models
# ---------------------
# Both are measured on the 6,000 held-out people. Read the interval before the number.

models = {"plain": plain, "fair": fair}
both = compare_models(models, sensitive_features=sex_test, X=X_test, y_true=y_test, n_sample=1000)
for one in both.audits:
    gap = one.gap("demographic_parity_gap")
    accuracy = models[one.model_name].score(X_test, y_test, sensitive_features=sex_test)
    print(f"{one.model_name}: accuracy {accuracy:.3f}, gap {gap.value:.3f} ", end="")
    print(f"[{gap.low:.3f}, {gap.high:.3f}], impact ratio {one.selection_ratio.value:.2f}")

figure, axes = plt.subplots(figsize=(6, 2.4), layout="constrained")
for place, one in enumerate(both.audits):
    for group, colour in zip(one.groups, ("tab:orange", "tab:blue"), strict=True):
        rate = group.selection_rate
        axes.plot([rate.low, rate.high], [place, place], color=colour, linewidth=3, alpha=0.4)
        axes.plot(rate.value, place, "o", color=colour, label=group.label if place == 0 else None)
axes.set(yticks=[0, 1], yticklabels=list(models), ylim=(1.5, -0.5), xlim=(0, None))
axes.set_xlabel("selection rate with its 95% interval")
axes.legend()
plt.show()

# %%
# 5. Explain one decision
# -----------------------
# The explanation compares a person with the most similar people of the other group.

rejected = (sex_test == "female").to_numpy() & (
    fair.predict(X_test, sensitive_features=sex_test) == 0
)
person = int(rejected.argmax())
print(explain(fair, X_test, sensitive_features=sex_test, rows=person, plain=plain))

# %%
# 6. Write the report and the filing
# ----------------------------------
# The report is an interactive page. The filing is a short A4 document with the same numbers and
# without individual rows. A name that ends in ``.pdf`` writes a PDF, if Chromium is installed.

write_report(both, "report.html", title="Adult: income over $50,000")
write_filing(
    both,
    "filing.html",
    title="Adult: income over $50,000",
    fields={"auditor": "A. Doe", "period": "1994", "data_source": "UCI Adult, CC BY 4.0"},
)

# %%
# 7. Save the model
# -----------------
# The folder contains text and numbers only. Nothing is pickled.

fair.save("fair-model")
again = fairmatch.load("fair-model")
same = again.predict(X_test, sensitive_features=sex_test) == fair.predict(
    X_test, sensitive_features=sex_test
)
print("identical predictions:", same.all())

# %%
# Next steps: :doc:`/howto/gate` rejects a model in CI if its gap is too large, and
# :doc:`/howto/monitor` monitors the gap in production.
