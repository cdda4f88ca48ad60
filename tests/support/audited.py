"""Models to audit, with known answers."""

import numpy as np
import pandas as pd


def planted_model(n_rows=2000, effect=0.3, seed=0):
    """Draw a model that is fair overall and unfair for people above 60 who are not married."""
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 81, n_rows)
    status = generator.choice(
        ["married", "never married", "divorced", "widowed"], n_rows, p=[0.5, 0.25, 0.15, 0.1]
    )
    group = generator.integers(0, 2, n_rows)
    X = pd.DataFrame(
        {
            "age": age,
            "marital_status": status,
            "income": generator.lognormal(3, 0.5, n_rows).round(2),
            "job": generator.choice(list("abcdef"), n_rows),
            "noise": generator.normal(size=n_rows),
        }
    )
    inside = (age > 60) & (status != "married")
    scores = 0.5 + 0.1 * X["noise"].clip(-1.5, 1.5) + generator.normal(0, 0.05, n_rows)
    outside = -effect * inside.mean() / (1 - inside.mean())
    scores += (group - 0.5) * np.where(inside, effect, outside)
    return scores.clip(0, 1).to_numpy(), np.where(group == 1, "male", "female"), X


def labelled_model(n_rows=600, seed=1):
    """Draw scores with labels, some of them tied, for oracles."""
    generator = np.random.default_rng(seed)
    group = (generator.random(n_rows) < 0.4).astype(int)
    X = pd.DataFrame(
        {"x": generator.normal(size=n_rows) + 0.5 * group, "z": generator.normal(size=n_rows)}
    )
    scores = (1 / (1 + np.exp(-X["x"] - 0.3 * X["z"]))).round(2).to_numpy()
    y = (generator.random(n_rows) < scores).astype(int)
    return scores, y, group, X


def appendix_b(n_rows=400):
    """Make both models of the paper's Appendix B on a grid: the unreasonable one first."""
    x = (np.arange(n_rows) + 0.5) / n_rows
    X, group = np.tile(x, 2)[:, None], np.repeat([0, 1], n_rows)
    side = np.sign(2 * X[:, 0] - 1)
    return (side * (1 - 2 * group) + 1) / 2, (side + 1) / 2, group, X
