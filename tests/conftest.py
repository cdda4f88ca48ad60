"""Settings of every test: repeatable examples, and one thread per worker."""

import os

# Two workers with two threads each would wait for one another; and bits depend on the number.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

from hypothesis import settings

settings.register_profile(
    "fairmatch", derandomize=True, deadline=None, database=None, max_examples=60
)
settings.load_profile("fairmatch")
