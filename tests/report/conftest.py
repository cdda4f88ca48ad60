import numpy as np
import pandas as pd
import pytest

from fairmatch import audit, compare_models

HOSTILE_COLUMN = '</script><script>window.hacked=1</script>"\'<img src=x onerror="window.hacked=1">'
LONG_COLUMN = "a very long name " * 30
RIGHT_TO_LEFT = "\u05d2\u05d9\u05dc \u202egnp.exe"
HOSTILE_VALUES = [
    "</script><script>window.hacked=1</script>",
    '"><svg onload="window.hacked=1">',
    "<!-- <script> \u2028 \u2029 ]]> &lt;b&gt; ${window.hacked=1} {{ 7*7 }}",
    "\U0001f469\u200d\U0001f4bb emoji",
    "\u202eright to left \u0627\u0644\u0639\u0645\u0631",
    "x" * 400,
]


def make_table(n_rows=240, seed=0):
    generator = np.random.default_rng(seed)
    group = np.where(np.arange(n_rows) % 5 < 2, "ann & bob's", "others <b>")
    age = generator.integers(18, 80, n_rows).astype(float)
    scores = np.clip(generator.uniform(0, 1, n_rows) + 0.15 * (group == "others <b>"), 0, 1)
    X = pd.DataFrame(
        {
            "age": age,
            HOSTILE_COLUMN: np.array(HOSTILE_VALUES)[generator.integers(0, 6, n_rows)],
            LONG_COLUMN: generator.choice(["yes", "no"], n_rows),
            RIGHT_TO_LEFT: generator.choice(["\u05db\u05df", "\u05dc\u05d0"], n_rows),
        }
    )
    y = (generator.uniform(0, 1, n_rows) < scores).astype(int)
    return X, y, group, scores


@pytest.fixture(scope="session")
def hostile():
    """A comparison of two models whose every name and value tries to break out of the page."""
    X, y, group, scores = make_table()
    return compare_models(
        {"<script>window.hacked=1</script>": scores, "second 'model'": scores**2},
        sensitive_features=group,
        X=X,
        y_true=y,
        ids=[f"<i>{k}</i> person-{k}" for k in range(len(y))],
        n_resamples=100,
        n_subsets=50,
        privileged="others <b>",
    )


@pytest.fixture(scope="session")
def plain():
    """Scores and groups, and nothing else."""
    generator = np.random.default_rng(1)
    return audit(generator.uniform(0, 1, 100), sensitive_features=["a", "b"] * 50, n_resamples=100)


@pytest.fixture(scope="session")
def curve():
    return pd.DataFrame(
        {
            "fairness_weight": [0.0, 1.0, 2.0],
            "accuracy": [0.8, 0.78, 0.7],
            "demographic_parity_gap": [0.2, 0.1, 0.0],
        }
    )
