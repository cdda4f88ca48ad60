r"""
Audit the scores of an unknown model
====================================

A thousand credit applicants have scores from an unknown model. The audit needs only the scores and
the groups. With the applicants' features it also shows who is treated like whom.
"""

# %%
# The scores
# ----------
# In this example the "unknown" model is a logistic regression. All scores are out-of-fold
# predictions.

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from fairmatch import audit
from fairmatch.datasets import load_german
from fairmatch.people.encoding import TableEncoder
from fairmatch.report import sentences, write_report

german = load_german()
numbers = TableEncoder().fit_transform(german.X)
scores = cross_val_predict(
    LogisticRegression(max_iter=2000), numbers, german.y, method="predict_proba"
)[:, 1]

# %%
# The audit
# ---------
# The labels are optional; with them the audit includes error rates.

found = audit(
    scores,
    sensitive_features=german.sensitive_features,
    X=german.X,
    y_true=german.y,
    model_name="the bank's model",
)
for sentence in sentences(found):
    print("-", sentence)

# %%
# Every gap has a confidence interval. If it starts at 0, the data are consistent with no
# difference.

for gap in found.gaps:
    print(f"{gap.symbol:6} {gap.value:.3f}  [{gap.low:.3f}, {gap.high:.3f}]")

# %%
# Two people who are treated alike
# --------------------------------
# The nearest fair matching pairs women and men with nearly equal scores who are as similar as
# possible. These two people are the least similar of all pairs.

people = found.individuals
pair = people.most_unlike(1)[0]
for difference in people.differences(pair)[:6]:
    print(f"{difference.column}: {difference.first} / {difference.second}")

# %%
# The report is one HTML file with all results.

write_report(found, "report.html")

# %%
# The figure shows the gaps with their intervals.

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for place, gap in enumerate(reversed(found.gaps)):
    axes.plot([gap.low, gap.high], [place, place], color="tab:blue", linewidth=3, alpha=0.4)
    axes.plot(gap.value, place, "o", color="tab:blue")
axes.set_yticks(range(len(found.gaps)), [gap.symbol for gap in reversed(found.gaps)])
axes.set(xlabel="gap, with its 95% interval", xlim=(0, None))
plt.show()
