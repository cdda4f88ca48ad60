"""The model card: the numbers of the audit, its limits, and names that stay text."""

import re

import numpy as np

from fairmatch import audit
from fairmatch.auditing.card import _safe


def scored(n=400):
    generator = np.random.default_rng(0)
    group = np.where(np.arange(n) % 2, "a|b <img src=x> [x](y)", "c\nd")
    return np.clip(generator.normal(0.5, 0.2, n), 0, 1), group, generator.integers(0, 2, n)


def test_a_card_has_every_gap_with_its_interval(tmp_path):
    scores, group, y = scored()
    found = audit(scores, sensitive_features=group, y_true=y, n_resamples=200)
    card = found.to_card(tmp_path / "README.md", limits=["Only for tests."])
    assert (tmp_path / "README.md").read_text() == card
    for gap in found.gaps:
        assert f"{gap.value:.3f} ({gap.low:.3f} to {gap.high:.3f})" in card
    for one in found.groups:
        assert f"{one.calibration_error:.3f}" in card
    limits = card.split("## Limits of use")[1]
    assert limits.index("Only for tests") < limits.index("400 people")
    assert "Without labels" not in card
    assert "Without features" in card


def test_names_of_groups_stay_text():
    scores, group, _ = scored()
    card = audit(scores, sensitive_features=group, n_resamples=200).to_card()
    assert "Without labels" in card
    for line in card.splitlines():
        assert not re.search(r"(?<!\\)[<\[]", line), line
    tables = [line for line in card.splitlines() if line.startswith("| ")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in tables[:4]}
    assert len(widths) == 1


def test_what_is_refused_is_a_limit():
    scores, group, y = scored(30)
    found = audit(scores, sensitive_features=group, y_true=y, n_resamples=200)
    assert found.refusals
    card = found.to_card()
    assert all(f"- {_safe(reason)}" in card.splitlines() for reason in found.refusals)
    assert "no statement" in card
