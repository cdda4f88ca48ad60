"""The losses of `fairmatch.learning.loss`, for torch."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class TorchLoss:
    """A loss of margins, and the link that turns margins into scores.

    Attributes
    ----------
    values : callable
        Maps margins and labels of the same shape to losses.
    link : callable
        Maps margins to scores.
    """

    values: Callable[[Tensor, Tensor], Tensor]
    link: Callable[[Tensor], Tensor]


def _logistic(margins: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(margins, labels, reduction="none")


def _squared(margins: Tensor, labels: Tensor) -> Tensor:
    return (margins - labels) ** 2 / 2.0


def _same(margins: Tensor) -> Tensor:
    return margins


TORCH_LOSSES = {
    "logistic": TorchLoss(_logistic, torch.sigmoid),
    "squared": TorchLoss(_squared, _same),
}
