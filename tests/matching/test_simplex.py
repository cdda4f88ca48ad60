"""POT's simplex comes alone: no array library is loaded with it, and POT stays whole for others."""

import os
import subprocess
import sys

import pytest

SOLVE = """
import os, sys
import numpy as np
from fairmatch.matching.solver import Transport

generator = np.random.default_rng(0)
{before}
for n in (20, 700):  # the dense way, and column generation
    plan = Transport(generator.random((n, 2)), generator.random((n, 2))).solve()
    assert plan.certificate.relative_gap <= 1e-9
{after}
"""
FRESH = {name: value for name, value in os.environ.items() if not name.startswith("POT_BACKEND")}


def run(before="", after=""):
    code = SOLVE.format(before=before, after=after)
    subprocess.run([sys.executable, "-c", code], check=True, env=FRESH)


def test_matching_loads_no_array_library_and_leaves_no_trace():
    run(
        after="""
assert not {"torch", "jax", "tensorflow", "cupy", "ot"} & set(sys.modules)
assert not [name for name in os.environ if name.startswith("POT_BACKEND")]
"""
    )


def test_pot_is_whole_for_who_imports_it_afterwards():
    pytest.importorskip("torch")
    run(
        after="""
import ot, torch

mass, cost = torch.ones(3) / 3, torch.rand(3, 3, requires_grad=True)
ot.emd2(mass, mass, cost).backward()
assert float(cost.grad.sum()) > 0.9
assert ot.lp.emd_wrap.emd_c is not None
"""
    )


def test_pot_that_is_there_already_is_used():
    run(before="import ot", after="assert sys.modules['ot'] is ot")
