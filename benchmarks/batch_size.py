"""How the paper's mini-batch estimate of a transport cost depends on the size of the batch.

A logistic regression on Adult, its fair matching on the test rows: exact, and estimated on 100
random batches of m people of each group (Remark A.2). Prints a table:

    python -m benchmarks.batch_size
"""

from paper.runs import minibatch_costs
from sklearn.linear_model import LogisticRegression

from fairmatch import fair_matching
from fairmatch.datasets import load_adult, paper_split


def main():
    split = paper_split(load_adult(), seed=0)
    model = LogisticRegression(max_iter=2000).fit(split.X_train, split.y_train)
    scores, groups = model.predict_proba(split.X_test)[:, 1], split.group_test
    exact = fair_matching(scores, groups, X=split.X_test).transport_cost(split.X_test)
    print("| m | estimate ± s.e. | estimate − exact |\n|---|---|---|")
    for m in (16, 64, 256, 1024, 2048):
        costs = minibatch_costs(scores, groups, split.X_test, batch_size=m)
        error, bias = costs.std(ddof=1) / len(costs) ** 0.5, costs.mean() - exact
        print(f"| {m} | {costs.mean():.3f} ± {error:.3f} | {bias:+.3f} |", flush=True)
    print(f"| all rows, exact | {exact:.3f} | – |")


if __name__ == "__main__":
    main()
