r"""
An audit of somebody else's scores
==================================

Here are a thousand applicants for a credit, with the score that some model gave them. Nobody tells
us which model. The audit needs the scores and the groups, and no more. With the applicants'
features it also shows who is treated like whom.
"""

# %%
# The scores
# ----------
# For this page a logistic regression stands in for the unknown model. Every score comes from a
# fit that has not seen the applicant.

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
# One call. The labels are optional; with them there are error rates too.

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
# Every gap comes with an interval. An interval that begins at 0 means that no difference at all
# cannot be ruled out.

for gap in found.gaps:
    print(f"{gap.symbol:6} {gap.value:.3f}  [{gap.low:.3f}, {gap.high:.3f}]")

# %%
# Two people who are treated alike
# --------------------------------
# A model that gives two groups similar scores treats some women like some men. The nearest fair
# matching pairs people with nearly equal scores who are as alike as possible. These two are the
# least alike of all pairs.

people = found.individuals
pair = people.most_unlike(1)[0]
for difference in people.differences(pair)[:6]:
    print(f"{difference.column}: {difference.first} / {difference.second}")

# %%
# The report holds all of this in one file that opens anywhere.

write_report(found, "report.html")

# %%
# The picture: gaps with their intervals.

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for place, gap in enumerate(reversed(found.gaps)):
    axes.plot([gap.low, gap.high], [place, place], color="tab:blue", linewidth=3, alpha=0.4)
    axes.plot(gap.value, place, "o", color="tab:blue")
axes.set_yticks(range(len(found.gaps)), [gap.symbol for gap in reversed(found.gaps)])
axes.set(xlabel="gap, with its 95% interval", xlim=(0, None))
plt.show()
