"""Models for other programs: ONNX files, and MLflow's pyfunc."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from fairmatch.exceptions import InputError, MissingExtraError
from fairmatch.learning.calibration import ScoreCalibration
from fairmatch.learning.reading import Reader, as_list
from fairmatch.learning.saving import load
from fairmatch.people.encoding import CategoricalColumn, DroppedColumn, NumericColumn, TableEncoder
from fairmatch.people.files import whole_file

_GROUPS = "sensitive_features"
_OPSET, _ML_OPSET = 18, 5


class ServedModel:
    """A fitted model behind MLflow's pyfunc: its input is one table with the groups in it.

    Parameters
    ----------
    model : estimator
        A fitted model of fairmatch.
    sensitive_column : str or list of str, optional
        Columns of the table with the groups, for models that take them beside X.
    """

    def __init__(self, model: Any, sensitive_column: str | list[str] | None = None) -> None:
        self.model = model
        self.columns = as_list(sensitive_column)

    def predict(self, model_input: Any, params: Any = None) -> pd.DataFrame:
        """Return the prediction of every row, and for classifiers the score of the second class."""
        features, groups = model_input, None
        if self.columns:
            groups = model_input[self.columns if len(self.columns) > 1 else self.columns[0]]
            features = model_input.drop(columns=self.columns)
        if not hasattr(self.model, "predict_proba"):
            return pd.DataFrame(
                {"prediction": self.model.predict(features, sensitive_features=groups)}
            )
        score = self.model.predict_proba(features, sensitive_features=groups)[:, 1]
        decided = self.model.classes_[(score >= 0.5).astype(np.intp)]
        return pd.DataFrame({"prediction": decided, "score": score})


def _load_pyfunc(data_path: str, model_config: dict[str, Any] | None = None) -> ServedModel:
    """Load the folder of ``model.save`` for MLflow, which calls this by name."""
    return ServedModel(load(data_path), (model_config or {}).get("sensitive_column"))


def to_onnx(model: Any, path: str | Path | None = None) -> Any:
    """Convert a fitted model of trees or a network to an ONNX model that reads the raw table.

    Parameters
    ----------
    model : FTMBoostingClassifier, FTMBoostingRegressor, FTMClassifier or FTMRegressor
        The fitted model, with its own encoder of tables or, for networks, ``encoder=None``.
    path : str or Path, optional
        Where to write the file, which should end in .onnx.

    Returns
    -------
    onnx.ModelProto
        One input of shape (n_rows, 1) for each column of the table, under the column's name, and
        ``sensitive_features`` with the group, unless the model predicts without it. Numbers and
        booleans are double, and text is string. A missing number is NaN, and a missing text is
        "". With ``encoder=None`` the columns are one input ``X`` of shape (n_rows, n_columns).
        The output is ``probabilities`` of shape (n_rows, n_classes), in the order of
        ``classes_``, or ``predictions`` of shape (n_rows, 1).

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    InputError
        If the model cannot be written as ONNX, such as one with an encoder of your own.

    Notes
    -----
    Scores are equal to those of ``predict_proba`` up to the rounding of floats. A group that the
    model does not know gets the score NaN, whereas ``predict_proba`` raises an error. Combinations
    of several attributes are one text, as in ``groups_``.

    Examples
    --------
    >>> from lightgbm import LGBMClassifier
    >>> from fairmatch import FTMBoostingClassifier, to_onnx
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> model = FTMBoostingClassifier(LGBMClassifier(n_estimators=5, n_jobs=1), random_state=0)
    >>> model = model.fit(german.X, german.y, sensitive_features=german.sensitive_features)
    >>> [one.name for one in to_onnx(model).graph.output]
    ['probabilities']
    """
    check_is_fitted(model)
    reader = getattr(model, "reader_", None)
    if not (
        isinstance(reader, Reader) and (hasattr(model, "trees_") or hasattr(model, "network_"))
    ):
        wrapped = hasattr(model, "scorer_") and hasattr(model, "estimator_")
        raise InputError(
            f"to_onnx takes fairmatch's models of trees and networks, got {type(model).__name__}. "
            + (
                "It wraps a model of another library: export its estimator_, which reads encoded "
                "columns, with that library's converter, such as skl2onnx, and repeat in your "
                "program what predict_proba or predict does with its scores. Or fit "
                if wrapped
                else "Fit "
            )
            + "FTMBoostingClassifier, FTMBoostingRegressor, FTMClassifier or FTMRegressor.",
            parameter="model",
        )
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise MissingExtraError("to_onnx needs onnx: pip install 'fairmatch[onnx]'.") from error
    graph = _Graph(onnx)
    margins = (_trees if hasattr(model, "trees_") else _network)(graph, model, reader)
    if reader.outcome.several:
        graph.result("probabilities", graph.add("Softmax", margins, axis=1), len(reader.classes_))
    elif reader.outcome.decides:
        positive = graph.add("Sigmoid", margins)
        if model.calibration_ is not None:
            positive = _calibrated(graph, positive, model.calibration_)
        one = graph.constant([[1.0]])
        graph.result("probabilities", graph.add("Concat", graph.add("Sub", one, positive), positive,
                                                axis=1), 2)  # fmt: skip
    else:
        scaled = graph.add("Mul", margins, graph.constant([[reader.scale_]]))
        shifted = graph.add("Add", scaled, graph.constant([[reader.mean_]]))
        graph.result("predictions", shifted, 1)
    found = graph.model(type(model).__name__)
    onnx.checker.check_model(found)
    if path is not None:
        with whole_file(path) as partial:
            partial.write_bytes(found.SerializeToString())
    return found


class _Graph:
    """The nodes of an ONNX graph in the making; `add` returns the name of a node's output."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.groups: str | None = None  # the code of every row's group, where the model sees it

    def _name(self) -> str:
        return f"fairmatch_{len(self.nodes) + len(self.constants) + 1}"

    def _described(self, name: str, kind: str, width: int) -> Any:
        kind = getattr(self.onnx.TensorProto, kind)
        return self.onnx.helper.make_tensor_value_info(name, kind, ["n_rows", width])

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = self._name()
        node = self.onnx.helper.make_node(operator, inputs, [name], domain=domain, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, values: ArrayLike) -> str:
        name = self._name()
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def input(self, name: str, text: bool, width: int = 1) -> str:
        if name in [one.name for one in self.inputs]:
            raise InputError(f"Two inputs of the ONNX model would be called {name!r}. Rename one.")
        self.inputs.append(self._described(name, "STRING" if text else "DOUBLE", width))
        return name

    def result(self, name: str, value: str, width: int) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self._described(name, "DOUBLE", width))

    def cast(self, value: str, kind: str = "DOUBLE") -> str:
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def places(self, name: str, levels: Sequence[Any], places: Sequence[int], other: int) -> str:
        """Return the place of every row's level, and ``other`` for levels that are not listed."""
        if all(isinstance(level, str) for level in levels):
            found = self.add(
                "LabelEncoder",
                name,
                domain="ai.onnx.ml",
                keys_strings=list(levels),
                values_int64s=list(places),
                default_int64=other,
            )
            return self.cast(found)
        equal = self.add("Equal", name, self.constant(np.array([levels], dtype=np.float64)))
        shifted = np.array(places, dtype=np.float64)[:, None] - other
        found = self.add("MatMul", self.cast(equal), self.constant(shifted))
        return self.add("Add", found, self.constant(np.array([[float(other)]])))

    def model(self, name: str) -> Any:
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=10, producer_name="fairmatch"
        )


def _columns(model: Any, reader: Reader) -> Sequence[Any]:
    if not isinstance(reader.encoder_, TableEncoder):
        raise InputError(
            f"{type(model).__name__} has an encoder of your own, which cannot be written as ONNX. "
            "Fit with encoder='table', or transform X before and fit with encoder=None.",
            parameter="model",
        )
    return reader.encoder_._columns


def _read_groups(graph: _Graph, reader: Reader) -> str:
    """Return the code of every row's group; -1 for groups that the model does not know."""
    labels, codes = list(reader.groups_), list(range(len(reader.groups_)))
    if reader.pooled_:
        codes += [labels.index("other")] * len(reader.pooled_)
        labels += list(reader.pooled_)
    inside = as_list(reader.columns)
    name = str(inside[0]) if len(inside) == 1 and isinstance(inside[0], str) else _GROUPS
    text = all(isinstance(label, str) for label in labels)
    if not text and not all(isinstance(label, int | float) for label in labels):
        raise InputError("Groups that mix text and numbers cannot be written as ONNX. Use text.")
    graph.groups = graph.places(graph.input(name, text), labels, codes, -1)
    return graph.groups


def _is_text(column: Any) -> bool:
    return isinstance(column, CategoricalColumn) and isinstance(column.levels[0], str)


def _trees(graph: _Graph, model: Any, reader: Reader) -> str:
    """Return the margins of trees, which see a code per column and one for the group."""
    parts, nothing = [], graph.constant([[np.nan]])

    def known(codes: str) -> str:
        return graph.add("Where", graph.add("Less", codes, zero), nothing, codes)

    zero = graph.constant([[0.0]])
    columns = _columns(model, reader)
    kept = [k for k, one in enumerate(columns) if not isinstance(one, DroppedColumn)]
    names = model.trees_.feature_name()
    places_of = {names[k]: place for place, k in enumerate([*kept, len(columns)][: len(names)])}
    for column in (columns[k] for k in kept):
        name = graph.input(column.name, _is_text(column))
        if isinstance(column, CategoricalColumn):
            places = range(len(column.levels))
            parts.append(known(graph.places(name, column.levels, places, -1)))
        else:
            parts.append(name)
    groups = _read_groups(graph, reader) if reader.at_prediction else None
    seen = graph.add("Concat", *parts, *([] if groups is None else [known(groups)]), axis=1)
    trees = _ensemble(model.trees_, places_of)
    margins = graph.add("TreeEnsemble", seen, domain="ai.onnx.ml", **trees)
    base = np.atleast_2d(model.base_margin_)
    margins = graph.add("Add", margins, graph.constant(base))
    # Trees have a leaf for a missing group too, and this model has seen nobody without one.
    return margins if groups is None else _spoilt(graph, margins, groups)


def _spoilt(graph: _Graph, margins: str, groups: str) -> str:
    """Return margins that are NaN where the group is unknown."""
    strange = graph.add("Less", groups, graph.constant([[0.0]]))
    return graph.add("Where", strange, graph.constant([[np.nan]]), margins)


def _calibrated(graph: _Graph, scores: str, calibration: ScoreCalibration) -> str:
    """Return scores calibrated by the maps of their groups, by interpolation between knots."""
    maps = list(calibration.maps.values())
    width = max(len(x) for x, _ in maps)
    padded = [[np.pad(own, (0, width - len(own)), "edge") for own in knots] for knots in maps]
    xs, ys = np.array(padded).swapaxes(0, 1)

    def whole(value: Any) -> str:
        return graph.constant(np.array(value, dtype=np.int64))

    known, first = graph.constant(xs), whole([[0]])
    if graph.groups is not None:
        codes = graph.cast(graph.groups, "INT64")
        known = graph.add("Gather", known, graph.add("Reshape", codes, whole([-1])), axis=0)
        first = graph.add("Mul", codes, whole(width))
    passed = graph.cast(graph.add("GreaterOrEqual", scores, known), "INT64")
    place = graph.add("Sub", graph.add("ReduceSum", passed, whole([1])), whole(1))
    place = graph.add("Min", graph.add("Max", place, whole(0)), whole(width - 2))
    place = graph.add("Add", place, first)
    after = graph.add("Add", place, whole(1))
    flat = [graph.constant(side.ravel()) for side in (xs, ys)]
    (x0, y0), (x1, y1) = ([graph.add("Gather", one, at) for one in flat] for at in (place, after))
    run, rise = graph.add("Sub", x1, x0), graph.add("Sub", y1, y0)
    nothing = graph.constant([[0.0]])
    slope = graph.add("Where", graph.add("Greater", run, nothing), graph.add("Div", rise, run),
                      nothing)  # fmt: skip
    moved = graph.add("Add", graph.add("Mul", slope, graph.add("Sub", scores, x0)), y0)
    half, below = (graph.constant([[v]]) for v in (0.5, np.nextafter(0.5, 0.0)))
    moved = graph.add("Where", graph.add("GreaterOrEqual", scores, half),
                      graph.add("Max", moved, half), graph.add("Min", moved, below))  # fmt: skip
    return graph.add("Where", graph.add("IsNaN", scores), scores, moved)


def _ensemble(trees: Any, places_of: dict[str, int]) -> dict[str, Any]:
    """Return LightGBM's trees as the attributes of ONNX's TreeEnsemble."""
    from onnx.numpy_helper import from_array

    table = trees.trees_to_dataframe()
    leaves = table[table["split_feature"].isna()]
    # A tree of one leaf becomes a node, both ends of which lead to the leaf.
    alone = leaves.index[leaves["parent_index"].isna()]
    nodes = table.drop(leaves.index.difference(alone)).astype(object)
    for column in ("left_child", "right_child"):
        nodes.loc[alone, column] = nodes["node_index"]
    nodes.loc[alone, ["split_feature", "threshold"]] = next(iter(places_of)), 0.0
    is_member, missing = nodes["decision_type"] == "==", nodes["missing_type"]
    if (missing[~is_member] == "Zero").any():
        raise InputError("Trees with zero_as_missing=True cannot be written as ONNX.")
    members = [
        [*map(float, str(levels).split("||")), np.nan] for levels in nodes["threshold"][is_member]
    ]
    splits = np.where(is_member, 0.0, nodes["threshold"]).astype(np.float64)
    # Without missing values in training, LightGBM takes one for 0.
    left = np.where(missing == "NaN", nodes["missing_direction"] == "left", splits >= 0.0)
    n_targets = trees.num_model_per_iteration()
    # A tree of one leaf and its leaf have one name, which means the leaf.
    at = {own: place for rows in (nodes, leaves) for place, own in enumerate(rows["node_index"])}
    ends = {"true": nodes["left_child"], "false": nodes["right_child"]}
    return {
        "n_targets": n_targets,
        "aggregate_function": 1,
        "post_transform": 0,
        "tree_roots": np.flatnonzero(~nodes["tree_index"].duplicated()),
        "nodes_modes": from_array(np.where(is_member, 6, 0).astype(np.uint8)),  # member, or <=
        "nodes_featureids": nodes["split_feature"].map(places_of),
        "nodes_splits": from_array(splits),
        "nodes_missing_value_tracks_true": (left & ~is_member).astype(int),
        **{f"nodes_{end}nodeids": child.map(at) for end, child in ends.items()},
        **{
            f"nodes_{end}leafs": child.isin(leaves["node_index"]).astype(int)
            for end, child in ends.items()
        },
        "leaf_targetids": leaves["tree_index"] % n_targets,  # the trees of a round: one per class
        "leaf_weights": from_array(leaves["value"].to_numpy(np.float64)),
        **({"membership_values": from_array(np.concatenate(members))} if members else {}),
    }


def _network(graph: _Graph, model: Any, reader: Reader) -> str:
    """Return the margins of a network, which sees encoded numbers and columns of groups."""
    network = model.network_
    if not hasattr(network, "networks"):
        raise InputError(
            "The model has a network of your own. Export that with torch.onnx.export.",
            parameter="model",
        )
    parts = []
    if reader.encoder_ is None:
        parts.append(graph.input("X", False, reader.n_encoded))
    else:
        for column in _columns(model, reader):
            parts += _encoded(graph, column)
    groups = _read_groups(graph, reader) if reader.at_prediction else None
    if groups is not None:
        others = graph.constant(np.arange(1.0, len(reader.groups_))[None])
        parts.append(graph.cast(graph.add("Equal", groups, others)))
    values = graph.cast(graph.add("Concat", *parts, axis=1), "FLOAT")
    layers = [[one.detach().numpy() for one in layer] for layer in next(network.networks())]
    for place, (weight, bias) in enumerate(layers):
        if place:
            values = graph.add("Relu", values)
        values = graph.add("Gemm", values, graph.constant(weight), graph.constant(bias), transB=1)
    margins = graph.cast(values)
    return margins if groups is None else _spoilt(graph, margins, groups)


def _encoded(graph: _Graph, column: Any) -> list[str]:
    """Return a column as `TableEncoder.transform` encodes it."""
    if isinstance(column, DroppedColumn):
        return []
    name = graph.input(column.name, _is_text(column))
    if isinstance(column, NumericColumn):
        is_missing = graph.add("IsNaN", name)
        span = column.maximum - column.minimum
        low = graph.constant([[column.minimum]])
        scaled = graph.add("Sub", name, low)
        wide = np.array([[span]]) if span else np.array([[np.inf]])
        scaled = graph.add("Div", scaled, graph.constant(wide))
        mean = graph.constant([[column.mean]])
        parts = [graph.add("Where", is_missing, mean, scaled)]
        return [*parts, graph.cast(is_missing)] if column.had_missing else parts
    levels, places = list(column.levels), column.places.tolist()
    unseen = places.pop()
    missing = len(column.name_endings) - 1 if column.had_missing else -1
    if "" not in levels and _is_text(column):
        levels, places = [*levels, ""], [*places, missing]
    code = graph.places(name, levels, places, unseen)
    if not _is_text(column):
        absent = graph.constant(np.array([[float(missing)]]))
        code = graph.add("Where", graph.add("IsNaN", name), absent, code)
    ends = graph.constant(np.arange(float(len(column.name_endings)))[None])
    return [graph.cast(graph.add("Equal", code, ends))]
