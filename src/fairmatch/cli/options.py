"""Messages of the library in the words of the command line: options instead of arguments."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Collection
from functools import partial

# Arguments whose option has another name, or whose value is part of the name.
_RENAMED = {
    "n_resamples": "--resamples",
    "n_rounds": "--rounds",
    "n_sample": "--sample",
    "pos_label": "--positive",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "sensitive_features": "--sensitive",
    "sensitive_at_prediction=False": "--without-sensitive",
    "y_score": "--score",
    "y_true": "--label",
}
# Advice for Python, and what has the same effect on the command line, in commands that train.
_ADVICE = {
    "FTMBoostingClassifier('predicted')": "--learner boosting --transport predicted",
    "QuantileAlignmentClassifier": "fairmatch adjust",
    "hold out more rows (validation_size=)": "take more rows",
    "Try larger fairness_weights where the method allows them": "Take more rows",
}
# Arguments whose option has the same name.
_SAME = (
    *("confidence", "criterion", "decisions", "fairness_weight", "favourable", "gap_measure"),
    *("keep", "max_gap", "min_group_size", "outcome", "part_weights", "privileged", "reference"),
    *("scale", "small_groups", "strength", "threshold", "transport", "weight_kind"),
)
_OPTIONS = _RENAMED | {name: f"--{name.replace('_', '-')}" for name in _SAME}
_VALUE = r"""'[^']*'|"[^"]*"|\[[^\]]*\]|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|"""
# Not inside a path, a quotation or the call of a class.
_BEFORE, _AFTER = r"(?<![\w./\\'\"-])(?<!\w\()", r"(?!['\"]|\.?[\w/\\=])"


def as_typed(text: str, destinations: Collection[str]) -> str:
    """Return a message in which arguments of Python are written as options.

    Parameters
    ----------
    text : str
        A message of the library.
    destinations : collection of str
        Names of the options that the command has, as argparse stores them.

    Examples
    --------
    >>> from fairmatch.cli.options import as_typed
    >>> as_typed("Lower max_gap=0.05, or pass keep=['a b'] (--keep 'a b').", ["max_gap", "keep"])
    "Lower --max-gap 0.05, or pass --keep 'a b'."
    >>> as_typed("Lower max_gap=0.05.", ["keep"])
    'Lower max_gap=0.05.'
    """
    if "transport" in destinations:
        for advice, typed in _ADVICE.items():
            text = text.replace(advice, typed)
    for name, option in _OPTIONS.items():
        if option.removeprefix("--").replace("-", "_") not in destinations:
            continue
        if "=" not in name:
            given = re.compile(f"{_BEFORE}{name}=({_VALUE}){_AFTER}")
            text = given.sub(partial(_typed, option), text)
        if "_" in name:  # a word of everyday English has none
            # One of several attributes: sensitive_features['sex'].
            chosen = re.compile(f"{_BEFORE}{name}\\[('[^']*')\\]")
            text = chosen.sub(partial(_typed, option), text)
            text = re.sub(f"{_BEFORE}{name}{_AFTER}", option, text)
    # A message may name both already.
    return re.sub(r"(--[a-z-]+(?: [^()]+)?) \(\1\)", r"\1", text)


def _typed(option: str, found: re.Match[str]) -> str:
    """Return an option with its value, or what was found where the value cannot be read."""
    if not found[1]:
        return option
    try:
        given = literal_eval(found[1])
    except (ValueError, SyntaxError):
        return found[0]
    values = given if isinstance(given, list) else [given]
    return " ".join([option, *(shlex.quote(str(item)) for item in values)])
