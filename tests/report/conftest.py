import numpy as np
import pandas as pd
import pytest
from hostiletable import make_table

from fairmatch import audit, compare_models


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
