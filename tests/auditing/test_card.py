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


def test_a_card_of_several_classes_says_what_decides():
    generator = np.random.default_rng(1)
    chances, group = generator.dirichlet(np.ones(3), 400), np.resize(["f", "m"], 400)
    names = ["Low", "Mid", "High"]
    truth = np.array(names)[generator.integers(0, 3, 400)]
    found = audit(chances, sensitive_features=group, y_true=truth, classes=names,
                  favourable=["Mid", "High"], n_resamples=200)  # fmt: skip
    card = found.to_card()
    assert "0.5" not in card.split("## Groups")[0]
    assert "threshold" not in card
    assert "mean" not in card.split("## Classes")[0]
    assert "calibration" not in card
    assert (
        "- given the class Mid or High: the class with the largest probability is Mid or High"
        in card
    )
    assert "- Classes, from the lowest to the highest: Low, Mid, High" in card
    shares, rest = card.split("## Classes that people get\n")[1].split(
        "## Classes that people get,"
    )
    confusion, rest = rest.split("## Gaps over all classes")
    for one in found.classes.groups:
        for own in one.shares.values():
            assert f"{own.value:.3f} ({own.low:.3f} to {own.high:.3f})" in shares
        for true, row in one.confusion.items():
            assert f"| {one.label} | {true} | {one.n_true[true]} |" in confusion
            assert all(f"{own.value:.3f}" in confusion for own in row.values())
        assert f"| {one.label} | {one.accuracy.value:.3f}" in confusion
    for gap in found.classes.gaps:
        assert f"{gap.value:.3f} ({gap.low:.3f} to {gap.high:.3f})" in rest
    assert len(found.classes.gaps) == 5


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
