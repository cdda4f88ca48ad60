"""Boosted trees in LightGBM's text format.

LightGBM trusts the text that it reads, and follows a node that points outside its tree. So this
module reads a file first, and LightGBM gets only values that were checked.
"""

from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from fairmatch.exceptions import ModelFileError
from fairmatch.tables.arrays import FloatArray

FILE = "trees.txt"
_HEADER = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
objective=custom
feature_names={names}
feature_infos={infos}
"""
_CATEGORICAL, _DECISIONS = 1, 16  # a bit of a decision's type, and how many types there are


def checked_trees(content: bytes, n_inputs: int) -> lgb.Booster:
    """Return the trees of a file; raise an error if they are damaged."""
    try:
        return lgb.Booster(model_str=_checked(content.decode("ascii"), n_inputs))
    except (ValueError, LookupError, lgb.basic.LightGBMError) as error:
        raise ModelFileError(f"{FILE} does not hold trees: {error}") from error


def _checked(text: str, n_inputs: int) -> str:
    """Return a new text of the trees that holds only values that were checked."""
    _, *blocks = text.split("\nend of trees", 1)[0].split("\nTree=")
    _hold(len(blocks) > 0, "there is no tree")
    header = _HEADER.format(
        last=n_inputs - 1,
        names=" ".join(f"Column_{index}" for index in range(n_inputs)),
        infos=" ".join(["none"] * n_inputs),
    )
    trees = [
        f"Tree={index}\n{_Tree.read(block).checked(n_inputs)}\n"
        for index, block in enumerate(blocks)
    ]
    return "\n".join([header, *trees, "end of trees\n"])


@dataclass(frozen=True, eq=False)
class _Tree:
    """The fields of a tree that a prediction needs."""

    split_feature: NDArray[np.int64]
    threshold: FloatArray
    decision_type: NDArray[np.int64]
    left_child: NDArray[np.int64]
    right_child: NDArray[np.int64]
    leaf_value: FloatArray
    cat_boundaries: NDArray[np.int64]
    cat_threshold: NDArray[np.int64]

    @classmethod
    def read(cls, block: str) -> "_Tree":
        fields = dict(line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)
        _hold(fields.get("is_linear", "0") == "0", "leaves are linear models")
        return cls(
            **{
                name: np.array(
                    fields.get(name, "").split(),
                    dtype=float if name in ("threshold", "leaf_value") else np.int64,
                )
                for name in cls.__dataclass_fields__
            }
        )

    def checked(self, n_inputs: int) -> str:
        """Return the tree as text; raise unless every decision leads to one of its leaves."""
        n_leaves = len(self.leaf_value)
        nodes, n_sets = np.arange(n_leaves - 1), max(len(self.cat_boundaries) - 1, 0)
        children = np.concatenate([self.left_child, self.right_child])
        parents = np.concatenate([nodes, nodes])
        decisions = self.split_feature, self.threshold, self.decision_type, self.left_child
        _hold(n_leaves > 0 and np.isfinite(self.leaf_value).all(), "a leaf has no value")
        _hold(all(len(part) == len(nodes) for part in decisions), "a decision is incomplete")
        # Every leaf and every node but the root is reached exactly once, and never backwards.
        reached = np.concatenate([nodes[1:], ~np.arange(n_leaves)]) if n_leaves > 1 else nodes
        _hold(np.array_equal(np.sort(children), np.sort(reached)), "it is not a tree")
        _hold(bool(((children < 0) | (children > parents)).all()), "it is not a tree")
        _hold(_within(self.split_feature, n_inputs), "a decision is on a column that is not there")
        _hold(_within(self.decision_type, _DECISIONS), "a decision is of an unknown type")
        _hold(not np.isnan(self.threshold).any(), "a threshold is not a number")
        chosen = self.threshold[self.decision_type & _CATEGORICAL > 0]
        _hold(_within(chosen, n_sets), "a set of categories is not there")
        bounds = self.cat_boundaries if n_sets else np.array([0])
        complete = bounds[0] == 0 and bounds[-1] == len(self.cat_threshold)
        _hold(complete and (np.diff(bounds) > 0).all(), "a set of categories is incomplete")
        _hold(_within(self.cat_threshold, 2**32), "a set of categories is not one")
        fields = {
            name: " ".join(map(repr, getattr(self, name).tolist()))
            for name in self.__dataclass_fields__
            if n_sets or not name.startswith("cat_")
        }
        fields = {"num_leaves": str(n_leaves), "num_cat": str(n_sets), **fields}
        return "\n".join(f"{name}={value}" for name, value in fields.items())


def _within(values: NDArray[Any], end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _hold(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ValueError(f"{otherwise}.")
