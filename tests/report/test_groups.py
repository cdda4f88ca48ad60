"""The figures about estimated groups, and about a number whose bands are the groups."""

import numpy as np

from fairmatch import audit, bands, group_probabilities
from fairmatch.report import write_report


def test_estimated_groups_have_their_answers(tmp_path):
    generator = np.random.default_rng(0)
    share, decisions = generator.uniform(size=400), generator.integers(2, size=400)
    groups = group_probabilities(np.column_stack([share, 1 - share]), labels=["a", "b"])
    known = np.where(generator.random(400) < 0.3, np.where(share > 0.5, "a", "b"), None)
    found = audit(decisions, sensitive_features=groups, known=known, n_resamples=100)
    page = write_report(found, tmp_path / "report.html").read_text()
    assert "What is known of gaps between estimated groups" in page
    assert "thresholded" in page
    gap = found.estimated.gaps[0]
    assert f"{gap.low:.3f} to {gap.high:.3f}" in page


def test_the_mean_score_is_drawn_along_a_number(tmp_path):
    generator = np.random.default_rng(0)
    age, scores = generator.integers(20, 70, 400), generator.uniform(size=400)
    found = audit(scores, sensitive_features=bands(age, [40]), n_resamples=100)
    page = write_report(found, tmp_path / "report.html").read_text()
    assert "Mean score along the number" in page
    point = found.number.points[0]
    assert f"{point.low:g} to {point.high:g}" in page
