"""Settings of every test: repeatable examples, one thread per worker, the same arithmetic."""

import os

# Two workers with two threads each would wait for one another; and bits depend on the number. They
# also depend on the kernels that OpenBLAS chooses for a processor, so those are named. All this
# comes before NumPy is loaded.
os.environ.update(
    OMP_NUM_THREADS="1",
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    OPENBLAS_CORETYPE="Haswell",
)

from hypothesis import settings

settings.register_profile(
    "fairmatch", derandomize=True, deadline=None, database=None, max_examples=60
)
settings.load_profile("fairmatch")
