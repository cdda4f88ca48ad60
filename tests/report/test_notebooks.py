"""What a notebook shows of couplings, paths and audits: text from the data is escaped."""

from html.parser import HTMLParser

import numpy as np
import pytest

from fairmatch import audit, compare_models, fair_matching
from fairmatch.learning.choice import FairnessPath

HOSTILE = "<script>alert(1)</script>"


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        assert attributes == []
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


SCORES = [0.9, 0.2, 0.6, 0.7, 0.3, 0.1] * 20
GROUPS = [HOSTILE, HOSTILE, "b", "b", "c", "c"] * 20


def shown():
    found = audit(SCORES, sensitive_features=GROUPS, n_resamples=100, model_name=HOSTILE)
    both = compare_models(
        {HOSTILE: SCORES, "other": SCORES}, sensitive_features=GROUPS, n_resamples=100
    )
    path = FairnessPath(np.array([0.0, 2.0]), [type(HOSTILE, (), {})(), object()])
    return {"audit": found, "comparison": both, "coupling": fair_matching(SCORES, GROUPS),
            "path": path}  # fmt: skip


@pytest.mark.parametrize("kind", ["audit", "comparison", "coupling", "path"])
def test_nothing_from_the_data_becomes_markup_in_a_notebook(kind):
    read = Tags(shown()[kind]._repr_html_())
    assert read.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert HOSTILE in read.text


def test_a_coupling_lists_its_parts_and_a_path_its_weights():
    found = shown()
    assert found["coupling"]._repr_html_().count("<tr>") == 1 + len(found["coupling"].parts)
    assert repr(found["path"]).endswith("weights 0 to 2>")
