"""From which label weight on does the joint map no longer change? Adult's training rows, split 0.

python -m benchmarks.label_weight
"""

from fairmatch import OptimalTransportMatcher
from fairmatch.datasets import load_adult, paper_split


def main():
    split = paper_split(load_adult(), seed=0)
    X, y, groups = split.X_train, split.y_train, split.group_train
    print("| label weight | cost on X | mass matched across labels |\n|---|---|---|")
    for label_weight in (0, 1, 5, 10, 20, 50, 100, 200, 1000):
        pairs = OptimalTransportMatcher(label_weight, tolerance=1e-6).match(X, groups, y)
        across = pairs.expect(lambda source, target: (y[source] != y[target]).astype(float))
        print(f"| {label_weight} | {pairs.transport_cost(X):.4f} | {across:.4f} |", flush=True)
    rates = [y[groups == code].mean() for code in (0, 1)]
    print(f"\nLeast possible across labels: {abs(rates[0] - rates[1]):.4f} (base rates differ).")


if __name__ == "__main__":
    main()
