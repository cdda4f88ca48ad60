"""Formulas as MathML, written when the site is built, so that no page loads a script for them.

Every browser since 2023 draws MathML, and screen readers read it. The translation is docutils' own.
"""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# docutils reads the two digits of \tfrac12 as one number.
_SHORT_FRACTION = re.compile(r"\\(t|d)?frac(\d)(\d)")


def translated(node: Any, *, block: bool) -> str:
    """Return the formula of a node as MathML."""
    formula = _SHORT_FRACTION.sub(r"\\\1frac{\2}{\3}", node.astext()).strip()
    try:
        return str(tex2mathml(formula, as_block=block))
    except MathError as error:
        logger.warning("This formula cannot be drawn: %s (%s)", formula, error, location=node)
        return ""


def visit_inline(self: Any, node: Any) -> None:
    """Write a formula inside a line."""
    self.body.append(self.starttag(node, "span", "", CLASS="math") + translated(node, block=False))
    self.body.append("</span>")
    raise nodes.SkipNode


def visit_block(self: Any, node: Any) -> None:
    """Write a formula that stands by itself."""
    self.body.append(self.starttag(node, "div", CLASS="math") + translated(node, block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
