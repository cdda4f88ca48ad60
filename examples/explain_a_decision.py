r"""
Explain a decision to one person
================================

"Why was I rejected, and how was a similar person of the other group treated?" Here a woman's credit
application is rejected. The explanation shows the plain model's decision, the most similar men, and
the most similar woman whose application is accepted.
"""

# %%
# A fair model and a plain one
# ----------------------------

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier

from fairmatch import FTMBoostingClassifier
from fairmatch.auditing.explain import Explainer
from fairmatch.datasets import load_german

german = load_german()
X, sex = german.X, german.sensitive_features


def fitted(weight):
    trees = LGBMClassifier(n_estimators=60, n_jobs=1)
    model = FTMBoostingClassifier(trees, fairness_weight=weight, random_state=0)
    return model.fit(X, german.y, sensitive_features=sex)


model, plain = fitted(2.0), fitted(0.0)

# %%
# One person
# ----------
# An ``Explainer`` scores and encodes the table once. We explain the rejected woman whose score is
# closest to the threshold.

explainer = Explainer(model, X, sensitive_features=sex, plain=plain, outcome="accepted")
refused = np.flatnonzero((sex == "female") & ~explainer.selected)
row = int(refused[np.argmax(explainer.scores[refused])])
found = explainer.explain(row)
print(found)

# %%
# The columns in which she differs from the nearest woman who is accepted:

for difference in found.flip.differing:
    print(f"{difference.column}: {difference.own} / {difference.other}")

# %%
# A letter must not reveal another person, so it shows medians of ten people, on one A4 page:

print(found.letter("letter.html", sender="The bank"))

# %%
# Similar people
# --------------
# The scores of the 100 nearest men and women, by their distance to her.

far = explainer.distances(row)
for label, colour in (("female", "C0"), ("male", "C1")):
    near = np.flatnonzero(sex == label)
    near = near[np.argsort(far[near])[:100]]
    plt.scatter(far[near], explainer.scores[near], s=12, color=colour, label=label)
plt.axhline(0.5, color="grey", linewidth=1)
plt.scatter(0, found.score, color="black", marker="*", s=120, label="the person")
plt.xlabel("squared distance")
plt.ylabel("score")
_ = plt.legend()
