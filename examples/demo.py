"""Train on the bundled German credit table, and say what the numbers mean: `make demo`."""

from pathlib import Path

from sklearn.linear_model import LogisticRegression

from fairmatch import fair_matching
from fairmatch.cli import main
from fairmatch.datasets import load_german, paper_split
from fairmatch.matching import OptimalTransportMatcher
from fairmatch.measures import gap_table

FOLDER = Path("demo")


def show_plain_model() -> None:
    """Fit a plain logistic regression, and look at how it treats the two groups."""
    german = load_german()
    split = paper_split(german, seed=0)
    model = LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)
    scores = model.predict_proba(split.X_test)[:, 1]
    groups = split.sensitive_features_test
    gaps = gap_table(split.y_test, scores, sensitive_features=groups)
    print("German credit, a plain logistic regression, 200 test rows:")
    print(
        f"  demographic parity gap {gaps['demographic_parity_gap']:.3f}: so much larger is the "
        "share of accepted people in one group than in the other."
    )
    print(
        f"  Wasserstein gap {gaps['wasserstein_parity_gap']:.3f}: so far apart are the scores of "
        "women and men at the same rank of their group, on average."
    )
    matching = fair_matching(scores, groups, X=split.X_test)
    least = OptimalTransportMatcher().match(split.X_test, groups)
    print(
        f"  transport cost {matching.transport_cost(split.X_test):.2f}: so unlike are the people "
        f"whom it treats alike; {least.transport_cost(split.X_test):.2f} is the least possible.\n"
    )


if __name__ == "__main__":
    show_plain_model()
    print("Now a classifier whose gap is at most 0.05 on held-out rows:")
    main(["train", "german", "--max-gap", "0.05", "--epochs", "100", "--out", str(FOLDER)])
