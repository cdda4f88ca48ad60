"""The figure of the mean score along a number whose bands are the groups."""

import numpy as np

from fairmatch import audit, bands
from fairmatch.report import write_report


def test_the_mean_score_is_drawn_along_a_number(tmp_path):
    generator = np.random.default_rng(0)
    age, scores = generator.integers(20, 70, 400), generator.uniform(size=400)
    found = audit(scores, sensitive_features=bands(age, [40]), n_resamples=100)
    page = write_report(found, tmp_path / "report.html").read_text()
    assert "Mean score along the number" in page
    point = found.number.points[0]
    assert f"{point.low:g} to {point.high:g}" in page
