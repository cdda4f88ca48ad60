"""A table whose every name and value tries to break out of the page."""

import numpy as np
import pandas as pd

HOSTILE_COLUMN = '</script><script>window.hacked=1</script>"\'<img src=x onerror="window.hacked=1">'
LONG_COLUMN = "a very long name " * 30
RIGHT_TO_LEFT = "\u05d2\u05d9\u05dc \u202egnp.exe"
HOSTILE_VALUES = [
    "</script><script>window.hacked=1</script>",
    '"><svg onload="window.hacked=1">',
    "<!-- <script> \u2028 \u2029 ]]> &lt;b&gt; ${window.hacked=1} {{ 7*7 }}",
    "\U0001f469\u200d\U0001f4bb emoji",
    "\u202eright to left \u0627\u0644\u0639\u0645\u0631",
    "x" * 400,
]


def make_table(n_rows=240, seed=0):
    generator = np.random.default_rng(seed)
    group = np.where(np.arange(n_rows) % 5 < 2, "ann & bob's", "others <b>")
    age = generator.integers(18, 80, n_rows).astype(float)
    scores = np.clip(generator.uniform(0, 1, n_rows) + 0.15 * (group == "others <b>"), 0, 1)
    X = pd.DataFrame(
        {
            "age": age,
            HOSTILE_COLUMN: np.array(HOSTILE_VALUES)[generator.integers(0, 6, n_rows)],
            LONG_COLUMN: generator.choice(["yes", "no"], n_rows),
            RIGHT_TO_LEFT: generator.choice(["\u05db\u05df", "\u05dc\u05d0"], n_rows),
        }
    )
    y = (generator.uniform(0, 1, n_rows) < scores).astype(int)
    return X, y, group, scores
