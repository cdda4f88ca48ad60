"""Warnings that point at the user's line, from any depth inside fairmatch."""

import sys
import warnings

from fairmatch.exceptions import FairmatchWarning


def notify(message: str, category: type[FairmatchWarning]) -> None:
    """Issue a warning that points at the first caller outside fairmatch."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("fairmatch."):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)
