"""Draw the two pictures of the README: ``python examples/pictures.py`` writes them anew.

The first shows two models without any gap, drawn from their matchings. The second trains on Adult
and takes a few minutes. Both are written as SVG, with the same bytes every time.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMClassifier
from paper.rivals import ExponentiatedGradientClassifier, GapRegularizedBoostingClassifier
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingClassifier, fair_matching, fairness_path
from fairmatch.datasets import load_adult
from fairmatch.measures import demographic_parity_gap

FOLDER = Path(__file__).parents[1] / "docs" / "_static"
ACCEPTED, REJECTED = "#2b6cb0", "#cbd5e0"


def draw_matching(path: Path, n: int = 16) -> None:
    """Draw two models that accept half of each group: one swaps who is accepted."""
    x = np.tile((np.arange(n) + 0.5) / n, 2)
    group = np.repeat([0, 1], n)
    models = {
        "accepts opposite halves": np.where(group == 0, x < 0.5, x >= 0.5),
        "accepts the same half": x >= 0.5,
    }
    figure, panels = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained")
    for axes, (name, accepted) in zip(panels, models.items(), strict=True):
        scores = accepted.astype(float)
        pairs = fair_matching(scores, group, X=x[:, None])
        for i, j in zip(pairs.source_index, pairs.target_index, strict=True):
            axes.plot(x[[i, j]], group[[i, j]], color="#718096", linewidth=0.8, zorder=0)
        colours = np.where(accepted, ACCEPTED, REJECTED)
        axes.scatter(x, group, c=colours, s=60, edgecolors="#4a5568", linewidths=0.6)
        gap = demographic_parity_gap(None, scores, sensitive_features=group)
        cost = pairs.transport_cost(x[:, None])
        axes.set_title(f"A model that {name}:\ngap {gap:.0f}, transport cost {cost:.2f}", size=10)
        axes.set(yticks=[0, 1], yticklabels=["group a", "group b"], ylim=(-0.4, 1.4))
        axes.set_xlabel("what matters about a person")
        axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def draw_tradeoff(path: Path) -> None:
    """Draw accuracy against the gap for boosted trees on Adult, by four methods."""
    adult = load_adult()
    X, X_test, y, y_test, sex, sex_test = train_test_split(
        adult.X, adult.y, adult.sensitive_features, test_size=0.2, random_state=0
    )
    given = {"sensitive_features": sex}
    trees = {"estimator": LGBMClassifier(n_estimators=100, n_jobs=1), "random_state": 0}
    estimators = {
        "FTM, predicted map": FTMBoostingClassifier(transport="predicted", **trees),
        "FTM, marginal map": FTMBoostingClassifier(transport="marginal", warmup=0.0, **trees),
        "penalty on the gap": GapRegularizedBoostingClassifier(**trees),
    }
    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for name, estimator in estimators.items():
        weights = (0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0, 5.0)
        weights = tuple(10 * w for w in weights) if name == "penalty on the gap" else weights
        path_ = fairness_path(X, y, estimator=estimator, fairness_weights=weights, **given)
        curve = path_.curve(X_test, y_test, sensitive_features=sex_test)
        axes.plot(
            curve["demographic_parity_gap"], curve["accuracy"], "o-", markersize=4, label=name
        )
    points = []
    for bound in (0.005, 0.02, 0.04, 0.08):
        model = ExponentiatedGradientClassifier(plain_trees(), eps=bound, encoder="columns")
        scores = model.fit(X, y, **given).predict_proba(X_test, sensitive_features=sex_test)[:, 1]
        gap = demographic_parity_gap(None, scores, sensitive_features=sex_test)
        points.append((gap, ((scores >= 0.5) == y_test).mean()))
    axes.plot(*zip(*points, strict=True), "s--", markersize=4, label="fairlearn's reduction")
    axes.set(xlabel="gap of selection rates (ΔDP)", ylabel="accuracy", xlim=(0, None))
    axes.set_title(f"Boosted trees on Adult: {len(X_test):,} held-out people", fontsize=10)
    axes.legend(loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def plain_trees():
    """Return the trees that fairlearn's reduction is wrapped around: those of the others."""
    return LGBMClassifier(
        n_estimators=100, n_jobs=1, verbose=-1, deterministic=True, force_row_wise=True
    )


def save(figure, path: Path) -> None:
    """Write a figure without a date, so that the same figure gives the same bytes."""
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)
    print(path)


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "fairmatch"
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw_matching(FOLDER / "matching.svg")
    draw_tradeoff(FOLDER / "tradeoff.svg")
