"""The methods that are compared: what each is called, its weights and its settings.

How they train is in `fairmatch.experiments.runs.training`, so that who reads records loads no
learner.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fairmatch.experiments.runs.problem import Problem
from fairmatch.learning.weights import (
    ADV_WEIGHTS,
    ALIGNMENT_STRENGTHS,
    LAFTR_WEIGHTS,
    PAPER_WEIGHTS,
    REDUCTION_WEIGHTS,
    REG_WEIGHTS,
    REPAIR_AMOUNTS,
    SIPM_WEIGHTS,
    SMOOTHING_WEIGHTS,
)
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray

# A model of a curve: scores of the test rows, had they been of these groups.
Scorer: TypeAlias = Callable[[Any], FloatArray]

# Bounds of exponentiated gradient that are recorded, from the loosest on.
REDUCTION_BOUNDS = (0.08, 0.03, 0.01)


@dataclass(frozen=True, eq=False)
class Curve:
    """Models along a method's curve.

    Attributes
    ----------
    scorers : list
        One model per weight.
    training_scores : list of arrays
        Their scores of the training rows.
    coupling : Coupling or None
        The matching of the training rows, if the method made one of all of them.
    """

    scorers: list[Scorer]
    training_scores: list[FloatArray]
    coupling: Coupling | None = None


Fit: TypeAlias = Callable[[Problem, Mapping[str, Any], int], Curve]


@dataclass(frozen=True, eq=False)
class Method:
    """A way to train models along a curve.

    Attributes
    ----------
    name : str
        Its name in specs.
    weights : tuple of float
        Its fairness weights, unless a spec says otherwise.
    fit : callable or None
        Takes a problem, the spec's settings and the seed; returns the curve. None stands for the
        entry of this name in `fairmatch.experiments.runs.training`.
    schedule : str
        Which of a profile's lengths of training apply: "network", "trees" or "own".
    reference : str or None
        The unconstrained method that rank agreement and flips compare it with.
    settings : mapping
        Settings of its specs beside weights and schedule.
    """

    name: str
    weights: tuple[float, ...]
    fit: Fit | None = None
    schedule: str = "network"
    reference: str | None = "unfair"
    settings: Mapping[str, Any] = field(default_factory=dict)


_TREES: dict[str, Any] = {"schedule": "trees", "reference": "trees-unfair"}

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("unfair", (0.0,), reference=None),
        Method("reduction", REDUCTION_WEIGHTS),
        Method("reg", REG_WEIGHTS),
        Method("adv", ADV_WEIGHTS),
        Method("ftm-batch", PAPER_WEIGHTS, settings={"label_weight": 0}),
        Method("ftm", PAPER_WEIGHTS, settings={"label_weight": 0}),
        Method("laftr", LAFTR_WEIGHTS),
        Method("sipm", SIPM_WEIGHTS),
        Method("repair", REPAIR_AMOUNTS, settings={"small_group_neighbors": 10}),
        Method("trees-unfair", (0.0,), schedule="trees", reference=None),
        Method("trees-reg", REG_WEIGHTS, **_TREES),
        Method("trees-ftm", PAPER_WEIGHTS, **_TREES, settings={"label_weight": 0}),
        Method("trees-predicted", PAPER_WEIGHTS, **_TREES),
        Method("trees-eg", REDUCTION_BOUNDS, **_TREES),
        Method("trees-alignment", ALIGNMENT_STRENGTHS, **_TREES),
        Method("trees-thresholds", ALIGNMENT_STRENGTHS, **_TREES),
        Method("trees-smoothing", SMOOTHING_WEIGHTS, **_TREES, settings={"score_weight": 5}),
    )
}
"""The paper's methods and ours, by their names in specs."""
