"""How well a forest finds the group in a table, before and after full repair (AUC, held-out rows).

    python -m benchmarks.probe german bank adult

Half of the test rows of split 0 train the probe, the other half judge it.
"""

import sys

import numpy as np
from paper.rivals import TransportRepairTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from fairmatch.datasets import load_dataset, paper_split

PROBES = {
    "forest": lambda: RandomForestClassifier(300, min_samples_leaf=3, random_state=0),
    "logistic regression": lambda: LogisticRegression(max_iter=2000),
}


def found(features, group, probe):
    order = np.random.default_rng(0).permutation(len(group))
    train, judged = np.array_split(order, 2)
    scaler = StandardScaler().fit(features[train])
    model = probe().fit(scaler.transform(features[train]), group[train])
    scores = model.predict_proba(scaler.transform(features[judged]))[:, 1]
    return roc_auc_score(group[judged], scores)


def main(names):
    print("| table | neighbours | probe | as it is | repaired |\n|---|---|---|---|---|")
    for name in names:
        split = paper_split(load_dataset(name), 0)
        for n_neighbors in (1, 10):
            repair = TransportRepairTransformer(encoder=None, n_neighbors=n_neighbors)
            repair.fit(split.X_train, split.y_train, sensitive_features=split.group_train)
            moved = repair.transform(split.X_test, sensitive_features=split.group_test)
            for label, probe in PROBES.items():
                values = [found(X, split.group_test, probe) for X in (split.X_test, moved)]
                cells = " | ".join(f"{value:.3f}" for value in values)
                print(f"| {name} | {n_neighbors} | {label} | {cells} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["german"])
