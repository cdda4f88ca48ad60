"""Every gap of ten million scores, and their fair matching, against sorting them."""

import resource
import time

import numpy as np

from benchmarks.timing import Row, in_subprocess

N_ROWS = 10_000_000


def _data():
    generator = np.random.default_rng(0)
    group = (generator.random(N_ROWS) < 0.4).astype(np.int8)
    return generator.random(N_ROWS) ** (1.0 + 0.2 * group), group


def measure():
    """CPU seconds of sorting, of the gaps with the matching; peak memory over the scores' bytes."""
    from fairmatch import fair_matching
    from fairmatch.measures import gap_table

    scores, group = _data()
    first, second = scores[group == 0], scores[group == 1]
    start = time.process_time()
    np.argsort(first)
    np.argsort(second)
    sorting = time.process_time() - start
    del first, second
    start = time.process_time()
    gap_table(None, scores, sensitive_features=group)
    coupling = fair_matching(scores, group)
    ours = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(coupling) >= N_ROWS // 2
    return {"sorting": sorting, "ours": ours, "memory": peak * 1024 / scores.nbytes}


def rows():
    found = in_subprocess(measure)
    return [
        Row(
            "all score gaps + fair matching, 10 million rows / np.argsort of them, CPU time",
            found["ours"] / found["sorting"],
            3.0,
        ),
        Row(
            "the same, peak memory of the whole process / bytes of the scores",
            found["memory"],
            16.0,
        ),
    ]
