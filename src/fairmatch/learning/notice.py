"""Warnings that point at the line of the user, however deep inside they arise."""

import sys
import warnings

from fairmatch.exceptions import FairmatchWarning


def notify(message: str, category: type[FairmatchWarning]) -> None:
    """Warn at the first caller outside fairmatch."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("fairmatch."):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level + 1)
