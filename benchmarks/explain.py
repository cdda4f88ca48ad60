"""CPU seconds of explaining one person among a million, after the first explanation.

    python -m benchmarks explain

The table has twelve columns, of which four are categories. The scores are given, so that the time
of a model is no part of this.
"""

import time

import numpy as np

from benchmarks.timing import Row

N_PEOPLE = 1_000_000
LATER = 20


def table(generator):
    import pandas as pd

    numbers = {f"x{k}": generator.normal(size=N_PEOPLE) for k in range(8)}
    words = {
        f"c{levels}": generator.choice([f"level {k}" for k in range(levels)], N_PEOPLE)
        for levels in (3, 5, 12, 40)
    }
    return pd.DataFrame({**numbers, **words})


def rows():
    from fairmatch.auditing.explain import Explainer

    generator = np.random.default_rng(0)
    X, group = table(generator), generator.choice(["a", "b"], N_PEOPLE)
    scores = generator.random(N_PEOPLE)
    start = time.process_time()
    explainer = Explainer(scores, X, sensitive_features=group)
    explainer.explain(0)
    first = time.process_time() - start
    later = []
    for row in generator.integers(0, N_PEOPLE, LATER):
        start = time.process_time()
        explainer.explain(int(row))
        later.append(time.process_time() - start)
    what = f"explaining one person of {N_PEOPLE:,}, after the first"
    yield Row(f"{what}: CPU seconds of the slowest of {LATER} / 1", max(later), 1.0)
    again = f"{what}: median / the first ({first:.1f} CPU seconds)"
    yield Row(again, np.median(later) / first, 1.0)
