r"""
Similarity of texts
===================

A model scores applications that consist of short texts. Which applicants are similar? Here the
distance between two people is that of their text embeddings: TF-IDF and a singular value
decomposition from scikit-learn. Any other embedding can be used in the same way.
"""

# %%
# The applications
# ----------------
# Authors of two schools write about the same three trades. Both schools use the same words for the
# trade; all other words differ.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from fairmatch import FTMBoostingClassifier, OptimalTransportMatcher
from fairmatch.measures import gap_table

random = np.random.default_rng(0)
TRADES = {
    "bakes bread cakes dough ovens": 0.3,
    "repairs pipes pumps valves boilers": 0.5,
    "keeps books invoices taxes ledgers": 0.7,
}
MANNERS = {"a": "gladly often together outdoors", "b": "keenly daily alone indoors"}


def write(school, trade):
    """Return a short text of an author: five words of the trade, and two of the school."""
    words = (
        random.choice(trade.split(), 5).tolist()
        + random.choice(MANNERS[school].split(), 2).tolist()
    )
    return " ".join(random.permutation(words))


n_people = 1200
school = random.choice(["a", "b"], n_people)
trade = random.choice(list(TRADES), n_people)
years = random.integers(0, 20, n_people)
text = [write(*pair) for pair in zip(school, trade, strict=True)]
chance = np.array([TRADES[own] for own in trade]) + 0.015 * (years - 10) + 0.1 * (school == "a")
y = (random.random(n_people) < chance).astype(int)

# %%
# In this embedding, people of the same trade are near to each other. Years of experience count too.

features = TfidfVectorizer().fit_transform(text)
embedding = TruncatedSVD(6, random_state=0).fit_transform(features).astype(np.float32)
embedding = np.column_stack([embedding, np.float32(0.02) * years]).astype(np.float32)

# %%
# Match by the embedding
# ----------------------
# By chance, a third of the partners would have the same trade.

table = pd.DataFrame({"years": years}).join(pd.DataFrame(features.toarray()).add_prefix("word"))
coupling = OptimalTransportMatcher().match(table, school, similarity=embedding)
same = trade[coupling.source_index] == trade[coupling.target_index]
print(f"partners of the same trade: {coupling.mass @ same:.0%}")

# %%
# Train by the embedding
# ----------------------
# The trees use the words as features. The embedding defines which people they should treat alike.
# It has one row for every row that you pass to ``fit``, also with ``max_gap=``.

trees = LGBMClassifier(n_estimators=60, n_jobs=1)
half = np.arange(n_people) < n_people // 2
results = {}
for weight in (0.0, 0.5, 2.0):
    model = FTMBoostingClassifier(
        trees,
        transport="marginal",
        similarity=embedding[half],
        fairness_weight=weight,
        random_state=0,
    )
    model.fit(table[half], y[half], sensitive_features=school[half])
    scores = model.predict_proba(table[~half], sensitive_features=school[~half])[:, 1]
    gaps = gap_table(y[~half], scores, sensitive_features=school[~half])
    results[weight] = ((scores >= 0.5) == y[~half]).mean(), gaps["mean_parity_gap"]
    print(f"weight {weight}: accuracy {results[weight][0]:.3f}, gap {results[weight][1]:.3f}")

# %%
# The figure shows the embedding and some matched pairs.

figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
for name, colour in {"a": "tab:blue", "b": "tab:orange"}.items():
    axes.scatter(*embedding[school == name, 1:3].T, s=6, color=colour, label=f"school {name}")
for pair in random.choice(len(coupling), 60, replace=False):
    ends = embedding[[coupling.source_index[pair], coupling.target_index[pair]], 1:3]
    axes.plot(*ends.T, color="black", linewidth=0.4)
axes.set_xlabel("second component")
axes.set_ylabel("third component")
axes.legend()
plt.show()
