"""The page of results, from made-up records."""

import pytest
from curves import fill, record
from paper.pages import render_page
from paper.questions import GAPS, Answers
from paper.records import RecordStore
from paper.specs import FULL, PAPER_RIVALS, Study


@pytest.fixture
def study():
    return Study.of(FULL)


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path / "records")


def curve(accuracy):
    return {
        **{gap: [0.3, 0.0] for gap in GAPS.values()},
        "accuracy": [accuracy] * 2,
        "consistency": [0.9] * 2,
    }


def section(text, title):
    return text.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_short_answer_marks_what_is_at_least_the_papers_figure(study, store, tmp_path):
    fill(study, store, "ftm-batch", "bank", curve(0.8849))  # the paper has .885
    fill(study, store, "ftm", "bank", curve(0.885))
    lines = section(render_page(Answers(study, store), tmp_path), "The short answer").splitlines()
    accuracy = next(line for line in lines if line.startswith("| bank") and "accuracy" in line)
    assert "| 0.885 | 0.8849 ± 0.0000 (2) | **0.8850 ± 0.0000 (2)** |" in accuracy
    consistency = next(line for line in lines if "consistency" in line)
    assert "| 0.972 | 0.9000 ± 0.0000 (2) |" in consistency
    assert not any(line.startswith("| adult") for line in lines)  # nothing is recorded of it


def test_a_weight_picked_on_the_training_rows_is_judged_on_the_test_rows(study, store, tmp_path):
    gap = GAPS["DP"]
    known = {f"training: {gap}": [0.3, 0.03], "training: accuracy": [0.9, 0.8]}
    fill(study, store, "ftm", "bank", curve(0.7) | {gap: [0.3, 0.06]} | known)
    page = render_page(Answers(study, store), tmp_path)
    told = section(page, "If the weight is picked on the training rows")
    cells = "0.7000 ± 0.0000 (2) | 0.0600 ± 0.0000 (2) | 0 of 2 |"
    assert f"| bank | ΔDP = 0.04 | FTM, all rows (ours) | {cells}" in told


def test_a_part_whose_subject_is_not_recorded_is_left_out(study, store, tmp_path):
    fill(study, store, "ftm", "bank", curve(0.9) | {"transport_cost": [1.0, 1.0]})
    page = render_page(Answers(study, store), tmp_path)
    assert "## Boosted trees" not in page
    assert "## Fair representations" not in page
    assert "## Accuracy against fairness" in page
    fill(study, store, "trees-reg", "bank", curve(0.9))
    assert "## Boosted trees" in render_page(Answers(study, store), tmp_path)


def test_tables_the_paper_does_not_print_are_folded_under_their_pictures(study, store, tmp_path):
    fill(study, store, "ftm", "bank", curve(0.9))
    answers = Answers(study, store)
    assert render_page(answers, tmp_path).count("<details>") == 0
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "tradeoff-wdp.svg").touch()
    tradeoff = section(render_page(answers, tmp_path), "Accuracy against fairness")
    opened, closed = tradeoff.index("<details>"), tradeoff.index("</details>")
    assert opened < tradeoff.index("**bank, ΔWDP") < closed


@pytest.mark.parametrize(("spread", "told"), [(0.05, True), (0.0001, False)])
def test_a_claim_says_how_often_the_difference_is_within_the_errors(
    study, store, tmp_path, spread, told
):
    for key in (*PAPER_RIVALS, "ftm-batch"):
        for seed, sign in enumerate((-1, 1)):
            lead = 0.0 if key == "ftm-batch" else 0.01 + sign * spread
            spec = study.spec(key, "german", seed)
            store.write(record(spec, **curve(0.8 + lead)))
    page = render_page(Answers(study, store), tmp_path)
    claims = section(page, "Every number behind the verdicts")
    german = next(line for line in claims.splitlines() if line.startswith("2. "))
    assert ("misses by at most two standard errors in 3 others" in german) == told
