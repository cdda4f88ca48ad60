"""Boosted trees that minimise a loss plus a weighted penalty, grown by LightGBM."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import CouplingError, InputError, ModelFileError
from fairmatch.learning.choice import Prepared
from fairmatch.learning.estimator import (
    PAPER_WEIGHTS,
    ChoosesWeight,
    FairClassifier,
    FairRegressor,
    MatchesPeople,
    documented,
)
from fairmatch.learning.penalties import TreePenalty
from fairmatch.learning.progress import TrainingProgress
from fairmatch.learning.reading import (
    Reader,
    dealt,
    encoded,
    labels_of,
    seed_sequence,
    stratified_split,
)
from fairmatch.learning.saving import State, number_from
from fairmatch.matching.coupling import Coupling
from fairmatch.matching.matchers import Matcher
from fairmatch.people.checks import FloatArray, check_count, check_number, is_count
from fairmatch.people.encoding import TableEncoder
from fairmatch.people.outcome import LOGISTIC, Derivatives, Loss
from fairmatch.people.people import People

# Among the larger weights, trees with the marginal map pass from deciding to accepting nobody or
# everybody. On each of the four tables and on ACSIncome, one of these weights has a model that
# decides with a gap of .02, with that map and with the default one.
BOOSTING_CHOICES = (
    *(0.0, *PAPER_WEIGHTS[:14]),
    *(1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 5.5, 6.0, 7.0, 10.0, 20.0, 50.0),
)
_LEAST_ROUNDS = 100
# With several classes, which have as many trees each.
CLASS_CHOICES = (0.0, 0.2, 0.6, 1.5, 4.0, 10.0, 25.0, 50.0)
# Parameters of LightGBM that fairmatch sets or passes on in another way.
_OURS = (
    *("objective", "random_state", "n_jobs", "importance_type", "verbose", "verbosity", "seed"),
    *("n_estimators", "class_weight", "scale_pos_weight"),
)
# Other names of parameters that fairmatch reads. Under these names they would be overlooked.
_ALIASES = {
    "learning_rate": ("eta", "shrinkage_rate"),
    "n_estimators": (
        *("num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round"),
        *("num_rounds", "nrounds", "num_boost_round", "max_iter"),
    ),
    "boosting_type": ("boosting", "boost"),
    "objective": ("objective_type", "app", "application", "loss"),
    "n_jobs": ("num_threads", "num_thread", "nthread", "nthreads"),
    "random_state": ("seed", "random_seed"),
    "monotone_constraints": ("mc", "monotone_constraint", "monotonic_cst"),
}
_CATEGORIES = (
    *("categorical_feature", "cat_feature", "categorical_column", "cat_column"),
    "categorical_features",
)
# Parameters of LightGBM's objectives, which fairmatch's own objective would not read.
_OBJECTIVES = (
    *("sigmoid", "boost_from_average", "reg_sqrt", "alpha", "fair_c", "poisson_max_delta_step"),
    "tweedie_variance_power",
)
_STOPPING = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")


class BoostingObjective:
    r"""A loss summed over rows, plus the weighted penalty on the same scale.

    ``scale_pos_weight`` is a factor on the loss of positive rows and does not change the penalty.

    Notes
    -----
    With the link :math:`p(z)`, the penalty's gradient by the margin :math:`z` is :math:`p'(z)`
    times its gradient by :math:`p`, and its curvature is :math:`p'(z)^2` times. The slope
    :math:`p'` is the second derivative of the loss. With several classes, the Jacobian
    :math:`J_{ck} = p_c (1[c = k] - p_k)` of the link and curvatures :math:`s_c` by the
    probabilities, the matrix :math:`J^T s J` lies below the diagonal matrix of
    :math:`2 \sum_c s_c |J_{ck}| p_c (1 - p_c)`. LightGBM sums over rows, so the penalty, a mean, is
    multiplied by the sum of the weights.

    The penalty's curvature is multiplied by the learning rate. Where the penalty dominates, the
    shortened step then minimises the quadratic that lies above the penalty, and the penalty falls
    as fast as that bound allows. Without this factor the trees stall long before they have learned
    the loss.
    """

    def __init__(
        self,
        people: People,
        fairness_weight: float,
        penalty: TreePenalty | None,
        learning_rate: float = 1.0,
        scale_pos_weight: float = 1.0,
        loss: Loss = LOGISTIC,
    ) -> None:
        labels = labels_of(people)
        self.labels, self.loss = labels.values, loss
        self.mass = people.mass
        if scale_pos_weight != 1.0:
            self.mass = people.mass * np.where(labels.positive, scale_pos_weight, 1.0)
        self.total = people.mass.sum()
        self.fairness_weight, self.learning_rate = fairness_weight, learning_rate
        self.penalty = penalty if fairness_weight > 0.0 else None

    def values(self, margins: FloatArray) -> FloatArray:
        """Return the mean loss and the weighted penalty; the trees minimise their sum."""
        loss = self.mass @ self.loss.values(self.labels, margins) / self.total
        gap = 0.0 if self.penalty is None else self.penalty.value(self.loss.link(margins))
        return np.array([loss, self.fairness_weight * gap])

    def derivatives(self, margins: FloatArray, *, penalized: bool = True) -> Derivatives:
        """Return the gradient and curvature by the margins, with or without the penalty."""
        response, slope = self.loss.derivatives(self.labels, margins)
        several = margins.ndim == 2
        mass = self.mass[:, None] if several else self.mass
        gradient, curvature = mass * response, mass * slope
        if several:  # LightGBM's own factor, with which weight 0 is LightGBM's model
            curvature *= margins.shape[1] / (margins.shape[1] - 1.0)
        if self.penalty is None or not penalized:
            return gradient, curvature
        chances = self.loss.link(margins)
        first, second = self.penalty.derivatives(chances)
        scale = self.fairness_weight * self.total
        if several:
            mean = (first * chances).sum(axis=1, keepdims=True)
            others = second * chances**2 * (1.0 - chances)
            rest = others.sum(axis=1, keepdims=True) - others
            gradient += scale * chances * (first - mean)
            curvature += self.learning_rate * scale * 2.0 * (second * slope**2 + chances * rest)
        else:
            gradient += scale * first * slope
            curvature += self.learning_rate * scale * second * slope**2
        return gradient, curvature


FILE = "trees.txt"
_HEADER = """tree
version=v4
num_class={classes}
num_tree_per_iteration={classes}
label_index=0
max_feature_idx={last}
objective=custom
feature_names={names}
feature_infos={infos}
"""
# The fields of a tree that a prediction needs, and the gains that feature_importances_ needs.
_FIELDS: dict[str, type] = {
    "split_feature": np.int64,
    "threshold": float,
    "decision_type": np.int64,
    "left_child": np.int64,
    "right_child": np.int64,
    "leaf_value": float,
    "cat_boundaries": np.int64,
    "cat_threshold": np.int64,
    "split_gain": float,
}
_MOST_TREES = 10_000  # in a file; more could take all memory
_CATEGORICAL, _DECISIONS = 1, 16  # a bit of a decision's type, and how many types there are


def checked_trees(content: bytes, n_inputs: int, n_classes: int = 1) -> lgb.Booster:
    """Return the trees of a file; raise an error if they are damaged.

    LightGBM reads a new text that holds only values that were checked.
    """
    try:
        _, *blocks = _tree_blocks(content.decode("ascii"))
        _hold(len(blocks) > 0, "there is no tree")
        _hold(len(blocks) % n_classes == 0, "a class lacks a tree")
        _hold(len(blocks) <= _MOST_TREES, f"there are more than {_MOST_TREES:,} trees")
        header = _HEADER.format(
            last=n_inputs - 1,
            classes=n_classes,
            names=" ".join(f"Column_{index}" for index in range(n_inputs)),
            infos=" ".join(["none"] * n_inputs),
        )
        trees = [_checked_tree(block, n_inputs) for block in blocks]
        return lgb.Booster(model_str=_tree_text(header, trees))
    except (ValueError, LookupError, lgb.basic.LightGBMError) as error:
        raise ModelFileError(f"{FILE} does not hold trees: {error}") from error


def _tree_blocks(text: str) -> list[str]:
    """Return the header of a model's text, and the fields of every tree."""
    header, *trees = text.split("\nend of trees", 1)[0].split("\nTree=")
    return [header, *(tree.partition("\n")[2].rstrip() for tree in trees)]


def _tree_text(header: str, trees: Sequence[str]) -> str:
    numbered = [f"Tree={place}\n{tree}\n\n" for place, tree in enumerate(trees)]
    return "\n".join([header, "", *numbered, "end of trees\n"])


def _checked_tree(block: str, n_inputs: int) -> str:
    """Return the fields of a tree; raise unless every decision leads to one of its leaves."""
    given = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    _hold(given.get("is_linear", "0") == "0", "leaves are linear models")
    tree: dict[str, NDArray[Any]] = {
        name: np.array(given.get(name, "").split(), kind) for name, kind in _FIELDS.items()
    }
    feature, threshold, decision, left, right, leaf, bounds, sets, gain = tree.values()
    n_leaves, n_sets = len(leaf), max(len(bounds) - 1, 0)
    nodes = np.arange(n_leaves - 1)
    _hold(n_leaves > 0 and np.isfinite(leaf).all(), "a leaf has no value")
    complete = all(len(part) == len(nodes) for part in (feature, threshold, decision, left, gain))
    _hold(complete, "a decision is incomplete")
    # Every leaf and every node but the root is reached exactly once, and never backwards.
    reached = np.concatenate([nodes[1:], ~np.arange(n_leaves)]) if n_leaves > 1 else nodes
    children, parents = np.concatenate([left, right]), np.concatenate([nodes, nodes])
    _hold(np.array_equal(np.sort(children), np.sort(reached)), "it is not a tree")
    _hold(((children < 0) | (children > parents)).all(), "it is not a tree")
    _hold(_within(feature, n_inputs), "a decision is on a column that is not there")
    _hold(_within(decision, _DECISIONS), "a decision is of an unknown type")
    _hold(not np.isnan(threshold).any(), "a threshold is not a number")
    _hold(np.isfinite(gain).all(), "a gain is not a number")
    chosen = threshold[decision & _CATEGORICAL > 0]
    _hold(_within(chosen, n_sets), "a set of categories is not there")
    bounds = bounds if n_sets else np.array([0])
    complete = bounds[0] == 0 and bounds[-1] == len(sets) and bool((np.diff(bounds) > 0).all())
    _hold(complete, "a set of categories is incomplete")
    _hold(_within(sets, 2**32), "a set of categories is not one")
    lines = [f"num_leaves={n_leaves}", f"num_cat={n_sets}"]
    for name, values in tree.items():
        if n_sets or not name.startswith("cat_"):
            lines.append(f"{name}={' '.join(map(repr, values.tolist()))}")
    return "\n".join(lines)


def _within(values: NDArray[Any], end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _hold(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ValueError(f"{otherwise}.")


@dataclass(frozen=True)
class TreeSettings:
    """How trees are grown, as LightGBM and the training loop need it."""

    parameters: dict[str, Any]  #: Parameters of LightGBM.
    n_rounds: int  #: Number of trees.
    scale_pos_weight: float  #: Factor on the loss of positive rows.
    n_jobs: int  #: Number of threads.
    #: 1 shows a progress bar on a terminal, and 0 shows none. None shows one if training takes
    #: longer than two seconds.
    verbose: int | None


def read_trees(estimator: Any, kind: type[Any], random_state: Any) -> TreeSettings:
    """Return how a user's LightGBM estimator grows trees; raise if its settings cannot be used.

    Examples
    --------
    >>> found = read_trees(lgb.LGBMClassifier(num_leaves=7), lgb.LGBMClassifier, 0)
    >>> found.n_rounds, found.parameters["num_leaves"]
    (100, 7)
    """
    estimator = kind(n_estimators=200, n_jobs=1) if estimator is None else estimator
    if not isinstance(estimator, kind):
        suffix = kind.__name__.removeprefix("LGBM")
        raise InputError(
            f"estimator must be an instance of LightGBM's {kind.__name__}, such as "
            f"{kind.__name__}(num_leaves=15), or None; got {type(estimator).__name__}. "
            f"MatchSmoothing{suffix} and QuantileAlignment{suffix} take any estimator.",
            parameter="estimator",
        )
    given: dict[str, Any] = estimator.get_params()
    for what, advice in _unusable(given, real=kind is not lgb.LGBMClassifier):
        raise InputError(
            f"The estimator has {what}, which cannot be used here. {advice}", parameter="estimator"
        )
    check_count("n_estimators", given["n_estimators"])
    check_count("n_jobs", given["n_jobs"], -1, optional=True)
    check_number("learning_rate", given["learning_rate"], "(0, 1]")
    n_jobs = 0 if given["n_jobs"] is None else given["n_jobs"]
    verbose = given.get("verbose", given.get("verbosity"))
    random_state = estimator.random_state if random_state is None else random_state
    ours = {
        "seed": int(seed_sequence(random_state).generate_state(1)[0] >> 1),
        "num_threads": n_jobs,
        "deterministic": True,
        "force_row_wise": True,
        "feature_pre_filter": False,  # with it, LightGBM fails if no column is left
        "verbosity": -1,
    }
    return TreeSettings(
        {name: value for name, value in given.items() if name not in _OURS} | ours,
        int(given["n_estimators"]),
        float(given.get("scale_pos_weight", 1.0)),
        n_jobs,
        None if verbose is None else int(verbose > 0),
    )


def _unusable(given: dict[str, Any], *, real: bool) -> Iterator[tuple[str, str]]:
    """Yield every parameter of LightGBM that cannot be used, with what to do instead."""
    for name, value in given.items():
        if callable(value):
            advice = "fairmatch sets the objective itself; leave it out."
            yield f"a function as its {name}", advice
        if name in _STOPPING and value is not None:
            yield f"{name}={value!r}", "Set early_stopping_rounds beside estimator instead."
        if name in _OBJECTIVES:
            yield f"{name}={value!r}", "Trees grow with fairmatch's own objective; leave it out."
        if "file" in name or name in ("machines", "config", "data", "valid", "input_model"):
            yield f"{name}={value!r}", "Trees are grown on the table alone; leave it out."
        for known, aliases in _ALIASES.items():
            if name in aliases:
                yield f"{name}={value!r}", f"Write {known}= instead."
    if given["boosting_type"] not in ("gbdt", "goss"):
        advice = "Its trees change after they are grown, or ignore the scores so far. Use 'gbdt'."
        yield f"boosting_type={given['boosting_type']!r}", advice
    if given.get("linear_tree") or given.get("linear_trees"):
        yield "linear trees", "Leave linear_tree out."
    if given["objective"] not in (None, *(["regression"] if real else ["binary", "multiclass"])):
        advice = "fairmatch sets the objective; leave it out."
        yield f"objective={given['objective']!r}", advice
    for name in ("class_weight", "is_unbalance", "unbalance", "unbalanced_sets"):
        if given.get(name):
            yield f"{name}={given[name]!r}", "Use scale_pos_weight, or pass sample_weight to fit."
    for name in _CATEGORIES:
        if given.get(name) not in (None, "auto"):
            advice = "Columns of text and of the dtype 'category' are categories: convert these."
            yield f"{name}={given[name]!r}", advice
    sets = given.get("interaction_constraints") or ()
    words = isinstance(sets, str)
    if not words and not all(is_count(place, 0) for own in sets for place in own):
        advice = "Pass positions of columns, counted from 0; the group comes last."
        yield f"interaction_constraints={sets!r}", advice
    heavier = given.get("scale_pos_weight", 1.0)
    check_number("scale_pos_weight", heavier, "(0, inf)")
    if heavier != 1.0 and real:
        yield f"scale_pos_weight={heavier!r}", "Numbers have no classes; leave it out."


def fitting_settings(settings: TreeSettings, reader: Reader) -> TreeSettings:
    """Return settings for the inputs of trees: the columns of X without the group, then the group.

    Monotone constraints are given for the columns of X. LightGBM ends the process where it cannot
    keep them, so this raises an error before.
    """
    categories, names = reader.categorical, list(reader.encoder_.feature_groups_)
    if categories and settings.parameters.get("monotone_constraints_method") == "advanced":
        raise InputError(
            "monotone_constraints_method='advanced' and categorical columns do not combine. Use "
            "'intermediate'.",
            parameter="estimator",
        )
    given = settings.parameters.get("monotone_constraints")
    if given is None:
        return settings
    if isinstance(given, str | dict) or not all(one in (-1, 0, 1) for one in given):
        raise InputError(
            f"monotone_constraints must have -1, 0 or 1 for every column of X, got {given!r}.",
            parameter="estimator",
        )
    own, places = [int(one) for one in given], reader.group_places
    if len(own) == reader.n_features_in_ + 1 and not places and reader.at_prediction:
        places = [reader.n_features_in_]
    if len(own) != reader.n_features_in_ + (places == [reader.n_features_in_]):
        shown = ", ".join(reader.feature_names_in_ or map(str, range(reader.n_features_in_)))
        raise InputError(
            f"monotone_constraints has {len(own)} numbers, and X has {reader.n_features_in_} "
            f"columns: {shown}. Pass -1, 0 or 1 for every column, in this order; 0 for the group.",
            parameter="estimator",
        )
    if any(own[place] for place in places):
        raise InputError(
            f"monotone_constraints={own} makes scores rise or fall with the group. The entry of "
            "the group must be 0.",
            parameter="estimator",
        )
    own = [one for place, one in enumerate(own) if place not in places]
    for place, one in enumerate(own):
        if one and place in categories:
            raise InputError(
                f"monotone_constraints has {one} where column {names[place]!r} is categorical, and "
                "categories have no order. Make the column a number, or set its entry to 0.",
                parameter="estimator",
            )
    own += [0] * bool(reader.at_prediction)
    return replace(settings, parameters={**settings.parameters, "monotone_constraints": own})


# Parameters of LightGBM with which a tree depends on nothing but the margins before it.
_STEADY = {
    *(*lgb.LGBMModel().get_params(), "deterministic", "force_row_wise", "force_col_wise"),
    *("seed", "num_threads", "feature_pre_filter", "verbosity"),
}


class TreeTrainer:
    """A trainer of trees on one table, with early stopping if people are held out.

    The first ``warmup`` trees see the loss without the penalty. They are grown once and continued
    for every weight, from the margins after them. Trees that draw rows or columns at random are
    grown again, because the draws would differ. Training stops ``patience`` trees after the best
    one. Boosting starts at ``base_margin``, that of the best constant prediction.
    """

    def __init__(
        self,
        settings: TreeSettings,
        people: People,
        held_out: People | None = None,
        *,
        categorical: list[int],
        loss: Loss,
        warmup: int = 0,
        patience: int | None = None,
    ) -> None:
        self.settings, self.warmup, self.patience = settings, warmup, patience
        base = loss.start(labels_of(people).values, people.mass)
        self.base_margin, self.n_classes = base, np.size(base)
        self.parameters = {
            **settings.parameters, "num_class": self.n_classes, "objective": "none"
        }  # fmt: skip
        parts = [people] if held_out is None else [people, held_out]
        self.start = [np.full((len(part), *np.shape(base)), base) for part in parts]
        self.data: list[lgb.Dataset] = []
        for part, start in zip(parts, self.start, strict=True):
            table = encoded(part).inputs, labels_of(part).values
            given: dict[str, Any] = {"init_score": start, "params": self.parameters}
            self.data.append(
                self.data[0].create_valid(*table, **given)
                if self.data
                else lgb.Dataset(*table, categorical_feature=categorical, **given)
            )
        self.shared: tuple[str, list[FloatArray]] | None = None

    def train(
        self, objective: BoostingObjective, held_out: BoostingObjective | None = None
    ) -> tuple[lgb.Booster, FloatArray]:
        """Return the trees, and the objective on the held-out people after every round."""
        n_rounds, watched = self.settings.n_rounds, list[float]()
        plain = objective.penalty is None
        warmup = 0 if plain and held_out is not None else self.warmup
        weight, verbose = np.array([objective.fairness_weight]), self.settings.verbose
        with TrainingProgress(n_rounds, weight, verbose=verbose, unit="round") as progress:

            def derivatives(margins: FloatArray, data: lgb.Dataset, place: int) -> Derivatives:
                progress.update(place, lambda: objective.values(margins)[:, None])
                return objective.derivatives(margins, penalized=place >= warmup)

            def grow(first: int, end: int, start: list[FloatArray]) -> lgb.Booster:
                for data, margins in zip(self.data, start, strict=True):
                    data.set_init_score(margins)
                trees = lgb.Booster(self.parameters, self.data[0])
                for one in self.data[1:]:
                    trees.add_valid(one, "held out")
                for place in range(first, end):
                    trees.update(fobj=partial(derivatives, place=place))
                    if held_out is None:
                        continue
                    # Rounds of the warm-up ignore the penalty, so they must not count as the best.
                    value = np.inf
                    if place >= warmup:
                        value = float(held_out.values(_margins(trees)[1]).sum())
                    watched.append(value)
                    best = max(int(np.argmin(watched)) + 1, warmup)
                    if self.patience is not None and len(watched) - best >= self.patience:
                        break
                return trees

            texts, first, start = list[str](), 0, self.start
            try:
                if 0 < warmup < n_rounds and _is_steady(self.settings.parameters):
                    if self.shared is None:
                        trees = grow(0, warmup, self.start)
                        self.shared = trees.model_to_string(), _margins(trees)
                    text, start = self.shared
                    texts, first = [text], warmup
                    watched[:] = [np.inf] * warmup if held_out is not None else []
                texts.append(grow(first, n_rounds, start).model_to_string())
            except lgb.basic.LightGBMError as error:
                why = str(error).rstrip(" .\n")
                raise InputError(
                    f"LightGBM cannot grow these trees: {why}. Correct the parameters of "
                    "estimator.",
                    parameter="estimator",
                ) from error
        # Keep the trees in the form that is saved; this frees the training rows.
        best = int(np.argmin(watched)) + 1 if watched else n_rounds
        joined = _joined_trees(texts, best * self.n_classes)
        return lgb.Booster(model_str=joined), np.array(watched)


def _is_steady(parameters: dict[str, Any]) -> bool:
    """Return whether a tree depends on the margins before it, and on no random draw."""
    whole = parameters["subsample"] >= 1.0 or parameters["subsample_freq"] <= 0
    whole &= parameters["colsample_bytree"] >= 1.0
    return bool(whole and parameters.get("boosting_type", "gbdt") == "gbdt") and (
        parameters.keys() <= _STEADY
    )


def _margins(trees: lgb.Booster) -> list[FloatArray]:
    """Return the margins of the training rows and of the held-out rows, to the last bit."""
    found: list[FloatArray] = []

    def keep(margins: FloatArray, _: lgb.Dataset) -> tuple[str, float, bool]:
        found.append(np.array(margins))
        return "margins", 0.0, False

    trees.eval_train(keep)
    trees.eval_valid(keep)
    return found


def _joined_trees(texts: list[str], n_trees: int) -> str:
    """Return the first trees of several models as one model."""
    models = [_tree_blocks(text) for text in texts]
    lines = [line for line in models[-1][0].splitlines() if not line.startswith("tree_sizes")]
    trees = [tree for model in models for tree in model[1:]]
    return _tree_text("\n".join(lines), trees[:n_trees])


def unseen_scores(
    settings: TreeSettings,
    people: People,
    *,
    categorical: list[int],
    loss: Loss = LOGISTIC,
    n_folds: int = 2,
    n_rounds: int | None = None,
) -> FloatArray:
    """Return the score of every row by plain trees that were grown on the other folds.

    ``n_rounds`` is the number of these trees, by default that of the settings.
    """
    labels, groups, inputs = labels_of(people), people.groups, encoded(people).inputs
    # A class, or whether a number is above the mean.
    known = labels.positive if labels.classes is None else labels.values
    order = np.random.default_rng(settings.parameters["seed"]).permutation(len(people))
    fold = dealt(n_folds, groups.codes, known, order=order)
    quiet = replace(settings, verbose=0, n_rounds=n_rounds or settings.n_rounds)
    scored = []
    for number in range(n_folds):
        part = people.take(np.flatnonzero(fold != number))
        trainer = TreeTrainer(quiet, part, categorical=categorical, loss=loss)
        trees, _ = trainer.train(BoostingObjective(part, 0.0, None, loss=loss))
        scorer = TreeScorer(trees, trainer.base_margin, np.array([]), settings.n_jobs, loss)
        scored.append(scorer.scores(inputs[fold == number]))
    found = np.concatenate(scored)
    found[np.argsort(fold, kind="stable")] = found.copy()
    return found


@dataclass(frozen=True, eq=False)
class TreeScorer:
    """Trees that score rows."""

    trees: lgb.Booster
    base_margin: Any
    watched: FloatArray
    n_jobs: int | None = 1
    loss: Loss = LOGISTIC

    def scores(self, inputs: FloatArray) -> FloatArray:
        """Return the score of every row."""
        margins = self.trees.predict(inputs, raw_score=True, num_threads=self.n_jobs)
        return np.asarray(self.loss.link(self.base_margin + np.asarray(margins)))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        gains = np.asarray(self.trees.feature_importance("gain"), dtype=np.float64)
        return {
            "scorer_": self,
            "trees_": self.trees,
            "base_margin_": self.base_margin,
            "n_rounds_": self.trees.num_trees() // self.trees.num_model_per_iteration(),
            "feature_importances_": gains / gains.sum() if gains.sum() > 0.0 else gains,
            "held_out_objective_": self.watched,
        }

    def state(self) -> State:
        """Return the state to save: the trees, their base margin and the watched objective."""
        if self.trees.num_trees() > _MOST_TREES:
            raise InputError(
                f"The model has {self.trees.num_trees():,} trees, and a saved model holds at most "
                f"{_MOST_TREES:,}. Fit fewer trees, with a larger learning rate."
            )
        # JSON has no infinity, so null stands for rounds of the warm-up.
        watched = [v if np.isfinite(v) else None for v in self.watched.tolist()]
        base = np.asarray(self.base_margin).tolist()
        facts = {"base_margin": base, "held_out_objective": watched}
        return State(FILE, self.trees.model_to_string().encode(), facts)


@dataclass(eq=False, repr=False)
class BoostedTrees(ChoosesWeight):
    """Estimators that grow a path of trees with one binning of the table.

    A subclass is also a `FairClassifier` or a `FairRegressor`. It names the class of its LightGBM
    estimator, and its `_penalty` returns a `TreePenalty`.

    Parameters
    ----------
    warmup : float, default=0.5
        Share of the trees that see the loss without the penalty; they come first. The penalty then
        pulls together scores that the trees have already learned. Without a warm-up, a large
        weight may keep the trees from learning them.
    early_stopping_rounds : int, optional
        Stop after this many rounds without a better objective on held-out rows, and keep the trees
        up to the best round. For this, ``validation_size`` of the training rows is held out, and
        these rows are compared only with each other. A ready ``coupling`` cannot be passed then.
    validation_size : float, default=0.2
        Share of the rows held out for the choice by ``max_gap`` and for
        ``early_stopping_rounds``, stratified by label and group.
    random_state : int, optional
        Seed. The same seed gives the same model on the same machine and versions. By
        default it is that of ``estimator``.

    Attributes
    ----------
    n_rounds_ : int
        Number of trees.
    feature_importances_ : array
        Share of each column in the gain of all splits. If the trees see the group, its share comes
        last.
    held_out_objective_ : array
        The objective on the held-out rows after every round. It is infinite in the warm-up, and
        the array is empty without early stopping.
    """

    _sees: ClassVar[str] = "codes"
    _maps: ClassVar[tuple[str, ...]] = ("predicted", "marginal", "joint")
    _state_file: ClassVar[str] = FILE
    _cross_fits: ClassVar[bool] = True
    _lightgbm: ClassVar[type[Any]]
    # Folds of the scores that people are matched on, and the share of the rounds that these trees
    # have if that is 100 or more.
    _score_folds: ClassVar[int] = 2
    _score_rounds: ClassVar[float] = 0.5

    estimator: Any = None
    _: KW_ONLY
    transport: str | Matcher = "predicted"
    warmup: float = 0.5
    early_stopping_rounds: int | None = None

    def _encoder(self) -> TableEncoder:
        # Its numbers are for the matching; the trees see one column per column of the table.
        return TableEncoder(missing="encode")

    def _settings(self) -> TreeSettings:
        return read_trees(self.estimator, self._lightgbm, self.random_state)

    def _check(self, weights: Sequence[float], coupling: Coupling | None) -> None:
        super()._check(weights, coupling)
        self._settings()
        check_number("warmup", self.warmup, "[0, 1)")
        check_count("early_stopping_rounds", self.early_stopping_rounds, optional=True)
        if coupling is not None and self.early_stopping_rounds is not None:
            raise CouplingError(
                "With early_stopping_rounds, part of the rows is held out, so a coupling of all "
                "rows cannot be used. Leave one of the two out."
            )

    def _prepare(self, people: People, coupling: Coupling | None) -> Prepared:
        """Return a trainer of trees, with a matching that is made once it is needed."""
        settings = fitting_settings(self._settings(), self.reader_)
        loss, parts = self._outcome.loss, [people]
        if self._outcome.several and settings.scale_pos_weight != 1.0:
            raise InputError(
                f"scale_pos_weight={settings.scale_pos_weight:g} and "
                f"{len(self._outcome.classes)} classes do not combine. Pass sample_weight to fit.",
                parameter="estimator",
            )
        if self.early_stopping_rounds is not None:
            labels = labels_of(people).values
            split = stratified_split(labels, people.groups, self.validation_size, self.random_state)
            parts = [people.take(rows) for rows in split]
        for part in parts:
            part.rows_with_mass()
        penalties: list[Any] = []
        trainer = TreeTrainer(
            settings,
            *parts,
            categorical=self.reader_.categorical,
            loss=loss,
            warmup=int(self.warmup * settings.n_rounds),
            patience=self.early_stopping_rounds,
        )
        rate, heavier = settings.parameters["learning_rate"], settings.scale_pos_weight

        def train(weights: Sequence[float]) -> list[TreeScorer]:
            if any(weights) and not penalties:
                penalties.extend(self._penalty(part, coupling) for part in parts)
            scorers = []
            for weight in map(float, weights):
                objectives = [
                    BoostingObjective(part, weight, penalty, rate, heavier, loss)
                    for part, penalty in zip(parts, penalties or [None] * len(parts), strict=True)
                ]
                grown, watched = trainer.train(*objectives)
                scorers.append(
                    TreeScorer(grown, trainer.base_margin, watched, settings.n_jobs, loss)
                )
            return scorers

        def matched() -> Coupling | None:
            shared = len(parts) == 1 and penalties
            return getattr(penalties[0], "coupling", None) if shared else None

        return Prepared(train, matched)

    def _unseen_scores(self, people: People) -> FloatArray:
        settings = fitting_settings(self._settings(), self.reader_)
        share = max(_LEAST_ROUNDS, round(self._score_rounds * settings.n_rounds))
        return unseen_scores(
            settings,
            people,
            categorical=self.reader_.categorical,
            loss=self._outcome.loss,
            n_folds=self._score_folds,
            n_rounds=min(settings.n_rounds, share),
        )

    def _restore(self, content: bytes, facts: dict[str, Any], reader: Reader) -> TreeScorer:
        if reader.encoder_ is None:
            raise ModelFileError("The file is damaged: trees need the encoder of their table.")
        n_classes, base = len(reader.outcome.classes) or 1, facts["base_margin"]
        each = [number_from(own, "base_margin") for own in (base if n_classes > 1 else [base])]
        if len(each) != n_classes:
            raise ModelFileError("The file is damaged: every class needs a base_margin.")
        return TreeScorer(
            checked_trees(content, reader.n_inputs, n_classes),
            np.array(each) if n_classes > 1 else each[0],
            np.array([np.inf if v is None else float(v) for v in facts["held_out_objective"]]),
            self._settings().n_jobs,
            reader.outcome.loss,
        )

    @classmethod
    def _restored_estimator(cls, parameters: dict[str, Any]) -> Any:
        known = cls._lightgbm().get_params()
        for name in parameters:
            # LightGBM's constructor sets any name as an attribute, even that of a method.
            if name not in known and (hasattr(cls._lightgbm, name) or name.startswith("_")):
                raise ModelFileError(
                    f"The file is damaged: {cls._lightgbm.__name__} has no parameter {name!r}."
                )
        return cls._lightgbm(**parameters)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class FTMBoostingClassifier(BoostedTrees, MatchesPeople, FairClassifier):
    r"""Fairness Through Matching for gradient-boosted trees.

    First, people of different groups are matched by optimal transport on an encoded copy of the
    table. Then LightGBM's trees learn to predict well and to give matched people similar scores.
    The trees see categorical columns and missing values as they are.

    Parameters
    ----------
    estimator : LGBMClassifier, optional
        LightGBM's estimator, unfitted. It holds everything about the trees: their number, their
        leaves, the learning rate, threads. By default it grows 200 trees with LightGBM's own
        defaults and one thread. fairmatch sets its objective and its seed. Boosting by "dart" or
        "rf", linear trees, functions and early stopping inside it raise an error.
        ``monotone_constraints`` are those of the columns of X, 0 for a group among them.
        ``scale_pos_weight`` multiplies the loss of positive rows and does not change the matching
        or the penalty. In a grid search its parameters are called ``estimator__num_leaves`` and so
        on.
    transport : {"predicted", "marginal", "joint"} or a matcher, default="predicted"
        What people are matched on. "predicted" uses their features and a score of every row, by
        plain trees that were grown on other rows. It keeps the most accuracy at a given gap.
        "marginal" uses the features alone, as in the paper. It matches the most similar people, but
        a small gap then costs more accuracy. "joint" uses features and labels. Scores and labels
        have a weight of 100. A matcher is any object with a ``match`` method like that of
        `OptimalTransportMatcher`.
    fairness_weight : float or a list of float, default=1.0
        Weight of the penalty, the paper's lambda; 0 is plain LightGBM. With ``max_gap``, a
        list of weights to choose from; a single number then leaves the weights to the method.

    Attributes
    ----------
    trees_ : lightgbm.Booster
        The trees. Their sum plus ``base_margin_`` is the log-odds of the positive class. With
        several classes there is one such sum for every class.
    base_margin_ : float, or array of shape (n_classes,)
        Log-odds of the positive class in the rows that trees are grown on, where boosting starts;
        or the logarithms of the shares of several classes.

    Notes
    -----
    The trees minimise :math:`E\, l(Y, f(X, S)) + \lambda\, \Delta\mathrm{MDP}(f, T)` (Section 4.3
    of the paper) for the coupling T. The size :math:`|d|` of a difference is smoothed as
    :math:`\sqrt{d^2 + 0.05^2} - 0.05`. With more than two groups, or a criterion that compares
    people of the same label, T has several parts, and the penalty is their weighted mean.

    With several classes the loss is the cross-entropy of the softmax, and the difference of two
    people is half the L1 distance of their probability vectors, smoothed in every class. The
    predicted map matches people on the vector of out-of-fold probabilities. Both criteria that
    condition on the label then match people of every class with each other.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from fairmatch import FTMBoostingClassifier
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMBoostingClassifier(LGBMClassifier(n_estimators=5), fairness_weight=2.0)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> model.predict_proba(german.X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3, 2)
    """

    _lightgbm: ClassVar[type[Any]] = lgb.LGBMClassifier
    _choice_weights: ClassVar[tuple[float, ...] | None] = BOOSTING_CHOICES
    _several: ClassVar[bool] = True

    criterion: str = "demographic_parity"
    scoring: Any = "accuracy"
    calibrate: bool = False

    def _class_candidates(self, weights: Sequence[float]) -> Sequence[float]:
        # Every class has its own trees, so fewer weights are tried.
        return CLASS_CHOICES if weights is BOOSTING_CHOICES else weights


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class FTMBoostingRegressor(BoostedTrees, MatchesPeople, FairRegressor):
    r"""Fairness Through Matching for a real target, by gradient-boosted trees.

    First, people of different groups are matched by optimal transport on an encoded copy of the
    table. Then LightGBM's trees learn to predict well and to give matched people similar
    predictions. The trees see categorical columns and missing values as they are.

    Parameters
    ----------
    estimator : LGBMRegressor, optional
        LightGBM's estimator, unfitted. It holds everything about the trees: their number, their
        leaves, the learning rate, threads. By default it grows 200 trees with LightGBM's own
        defaults and one thread. fairmatch sets its objective and its seed. Boosting by "dart" or
        "rf", linear trees, functions and early stopping inside it raise an error.
        ``monotone_constraints`` are those of the columns of X, 0 for a group among them. In a grid
        search its parameters are called ``estimator__num_leaves`` and so on.
    transport : {"predicted", "marginal", "joint"} or a matcher, default="predicted"
        What people are matched on. "predicted" uses their features and a prediction for every row,
        by plain trees that were grown on other rows. "marginal" uses the features alone, as in the
        paper. "joint" uses features and the target. A difference of one standard deviation of the
        prediction or the target costs 25. A matcher is any object with a ``match`` method like
        that of `OptimalTransportMatcher`.
    fairness_weight : float or a list of float, default=1.0
        Weight of the penalty, the paper's lambda; 0 is plain LightGBM. The trees learn the target
        in standard deviations, so a weight means the same in every unit. With ``max_gap``, a
        list of weights to choose from; a single number then leaves the weights to the method.

    Attributes
    ----------
    trees_ : lightgbm.Booster
        The trees. Their sum plus ``base_margin_`` is in standard deviations from the mean.
    base_margin_ : float
        Where boosting starts: the mean of the rows that trees are grown on, which is about 0.

    Notes
    -----
    The trees minimise :math:`E\, (Y - f(X, S))^2 / 2 + \lambda\, \Delta\mathrm{MDP}(f, T)` for the
    coupling T, where Y and f are in standard deviations of Y. The size :math:`|d|` of a difference
    is smoothed as :math:`\sqrt{d^2 + 0.05^2} - 0.05`. With more than two groups T has several
    parts, and the penalty is their weighted mean.

    Examples
    --------
    >>> from lightgbm import LGBMRegressor
    >>> from fairmatch import FTMBoostingRegressor
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> X, amount = german.X.drop(columns="credit_amount"), german.X["credit_amount"]
    >>> model = FTMBoostingRegressor(LGBMRegressor(n_estimators=5), fairness_weight=2.0)
    >>> model = model.fit(X, amount, sensitive_features=german.sensitive_features)
    >>> model.predict(X[:3], sensitive_features=german.sensitive_features[:3]).shape
    (3,)
    """

    _lightgbm: ClassVar[type[Any]] = lgb.LGBMRegressor

    scoring: Any = "neg_root_mean_squared_error"
