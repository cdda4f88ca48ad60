"""The methods that are compared, with their weights and settings.

`fairmatch.experiments.runs.training` trains them. It is a module of its own, because a program that
only reads records should not load the learners.
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

# A model of a curve: a function from groups to the scores of the test rows in these groups.
Scorer: TypeAlias = Callable[[Any], FloatArray]

# The bounds of exponentiated gradient that are recorded, from loose to tight.
REDUCTION_BOUNDS = (0.08, 0.03, 0.01)


@dataclass(frozen=True, eq=False)
class Curve:
    """Models along a method's curve.

    Attributes
    ----------
    scorers : list
        One model per weight.
    training_scores : list of arrays
        Scores of the training rows, one array per model.
    coupling : Coupling or None
        The matching of all training rows, if the method has one.
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
        Name of the method in specs.
    weights : tuple of float
        Fairness weights of the method, unless a spec has others.
    fit : callable or None
        Takes a problem, the spec's settings and the seed; returns the curve. None stands for the
        entry of this name in `fairmatch.experiments.runs.training.FITS`.
    schedule : str
        Which of a profile's lengths of training applies: "network", "trees" or "own".
    reference : str or None
        The unconstrained method that rank agreement and flips compare it with. None for an
        unconstrained method.
    settings : mapping
        Settings of the specs beyond weights and schedule.
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
