"""The paper's claims: each can hold, and each can fail."""

import pytest
from curves import fill, record
from paper.claims import DOES_NOT, HOLDS, IN_PART, UNKNOWN, shares_held, verdicts
from paper.questions import GAPS, Answers, questions, reported
from paper.records import RecordStore
from paper.specs import FULL, PAPER_RIVALS, SERIES, Study

DP, MEAN, WDP = GAPS["DP"], GAPS["meanDP"], GAPS["WDP"]


@pytest.fixture
def study():
    return Study.of(FULL)


@pytest.fixture
def store(tmp_path):
    return RecordStore(tmp_path)


def judged(study, store):
    return [verdict.found.state for verdict in verdicts(Answers(study, store))]


def curve(accuracy=0.8, gaps=(0.3, 0.0), n=2, **columns):
    both = {DP: list(gaps), MEAN: list(gaps), WDP: list(gaps), "accuracy": [accuracy] * n}
    both["half-spaces: box"] = [[0.0, 0.1, 0.2, 0.3, 0.4]] * n
    return both | {name: [value] * n for name, value in columns.items()}


def test_without_records_nothing_is_claimed(study, store):
    assert judged(study, store) == [UNKNOWN] * 12


def everywhere(study, store, key, **columns):
    for dataset in study.datasets:
        fill(study, store, key, dataset, curve(**columns))


@pytest.mark.parametrize(
    ("ftm", "state"), [(0.80, HOLDS), (0.785, IN_PART), (0.792, HOLDS), (0.81, HOLDS)]
)
def test_competitive_means_within_a_hundredth_of_the_best_rival(study, store, ftm, state):
    for key in PAPER_RIVALS:
        everywhere(study, store, key)
    everywhere(study, store, "ftm-batch", accuracy=ftm)
    found = verdicts(Answers(study, store))[0]
    assert found.found.state == state
    assert "reaches a ΔWDP of 0.005 on 4 of 4" in found.numbers  # the other half of the claim


def test_competitive_on_some_tables_only_is_in_part(study, store):
    for key in PAPER_RIVALS:
        everywhere(study, store, key)
    for dataset in study.datasets:
        accuracy = 0.7 if dataset == "bank" else 0.8
        fill(study, store, "ftm-batch", dataset, curve(accuracy))
    found = verdicts(Answers(study, store))[0].found
    assert found.state == IN_PART
    assert found.where == "accuracy: adult, german, dutch"


@pytest.mark.parametrize(("ftm", "state"), [(0.8, IN_PART), (0.7, DOES_NOT)])
def test_constant_models_reach_no_level(study, store, ftm, state):
    for key in (*PAPER_RIVALS, "ftm-batch"):
        accuracy = ftm if key == "ftm-batch" else 0.8
        constant = curve(accuracy, (0.3, 0.01, 0.0), 3) | {"acceptance_rate": [0.3, 0.3, 0.0]}
        for dataset in study.datasets:
            fill(study, store, key, dataset, constant)
    found = verdicts(Answers(study, store))[0]
    assert found.found.state == state
    assert "reaches a ΔWDP of 0.005 on 0 of 4" in found.numbers


def test_where_nobody_comes_to_the_level_nothing_is_judged(study, store):
    for key in (*PAPER_RIVALS, "ftm-batch"):
        everywhere(study, store, key, gaps=(0.3, 0.25), consistency=0.9)
    assert judged(study, store)[8] == UNKNOWN
    fill(study, store, "ftm-batch", "bank", curve(consistency=0.9))
    assert judged(study, store)[8] == UNKNOWN  # nobody to be compared with
    fill(study, store, "reg", "bank", curve(consistency=0.8))
    found = verdicts(Answers(study, store))[8]
    assert found.found.state == HOLDS
    assert "best in 1 of 1 comparisons (3 more are not possible)" in found.numbers


def test_two_maps_are_compared_where_half_of_the_splits_have_both(study, store):
    for seed in range(5):
        for key, accuracy in (("ftm", 0.8), ("ftm-joint", 0.9)):
            low = 0.1 if key == "ftm" and seed > 1 else 0.0  # comes to no level on three splits
            gaps = curve(accuracy, gaps=(0.3, low), equalized_odds_gap=0.1)
            store.write(record(study.spec(key, "adult", seed), **gaps))
    found = verdicts(Answers(study, store))[4]
    assert found.found.state == UNKNOWN
    store.write(record(study.spec("ftm", "adult", 2), **curve(0.8, equalized_odds_gap=0.1)))
    found = verdicts(Answers(study, store))[4]
    assert found.found.state == IN_PART  # more accurate, the same gap
    assert "accuracy at 0.033, all rows: +0.1000 ± 0.0000 (3 splits)" in found.numbers


@pytest.mark.parametrize(
    ("ftm", "least", "state"),
    [(0.9, 0.1, HOLDS), (0.9, 0.0, IN_PART), (0.7, 0.1, IN_PART), (0.7, 0.0, DOES_NOT)],
)
def test_german_is_two_claims_in_one(study, store, ftm, least, state):
    fill(study, store, "ftm-batch", "german", curve(ftm))
    for key in PAPER_RIVALS:
        fill(study, store, key, "german", curve(0.8))
    # A second, fairer split that comes to no level below `least`.
    store.write(record(study.spec("reduction", "german", 0), **curve(0.8, gaps=(0.3, least))))
    store.write(record(study.spec("reduction", "german", 1), **curve(0.8, gaps=(0.3, least))))
    assert judged(study, store)[1] == state


@pytest.mark.parametrize(
    ("position", "column", "better"),
    [(2, "half-spaces: outliers", -1), (8, "consistency", 1)],
)
def test_best_on_all_tables(study, store, position, column, better):
    def value(number):
        return [0.5] * number if "outliers" in column else number / 10

    low, high = (value(3), value(5)) if better < 0 else (value(5), value(3))
    for dataset in study.datasets:
        for key in PAPER_RIVALS:
            fill(study, store, key, dataset, curve(**{column: high}))
        fill(study, store, "ftm-batch", dataset, curve(**{column: low}))
    assert judged(study, store)[position] == HOLDS
    german = Study.of(FULL, datasets=["german"])
    assert judged(german, store)[position] == IN_PART  # it speaks of four tables
    fill(study, store, "adv", "bank", curve(**{column: value(1) if better < 0 else value(9)}))
    assert judged(study, store)[position] == IN_PART


def test_second_best_is_enough_on_subsets_by_a_variable(study, store):
    columns = {q.quantity for q in questions() if q.experiment == "variables"}

    def filled(key, number):
        for dataset in ("german", "dutch"):
            fill(study, store, key, dataset, curve(**dict.fromkeys(columns, number)))

    filled("reg", 0.1)
    filled("ftm-batch", 0.2)
    filled("adv", 0.3)
    assert judged(study, store)[3] == UNKNOWN  # a rival is missing
    filled("reduction", 0.3)
    assert judged(study, store)[3] == HOLDS
    filled("reduction", 0.15)
    assert judged(study, store)[3] == DOES_NOT


@pytest.mark.parametrize(
    ("accuracy", "gap", "state"),
    [(0.82, 0.01, HOLDS), (0.82, 0.03, IN_PART), (0.78, 0.03, DOES_NOT)],
)
def test_joint_against_marginal(study, store, accuracy, gap, state):
    fill(study, store, "ftm-batch", "adult", curve(equalized_odds_gap=0.02))
    joint = curve(accuracy, equalized_odds_gap=gap)
    fill(study, store, "ftm-batch-joint", "adult", joint)
    assert judged(study, store)[4] == state


def label_weight_runs(study, store, accuracies, costs=None):
    for value in study.profile.label_weights:
        key, settings = study.of_label_weight("ftm", value)
        # The main lines have more weights, at which the others were not trained.
        weights = [1.0, 2.0] if settings else [0.9, 1.0, 2.0, 10.0]
        gaps = [{1.0: 0.3, 2.0: 0.0}.get(weight, 0.04) for weight in weights]
        columns = {
            "weight": weights,
            **{name: gaps for name in (DP, MEAN, WDP)},
            "accuracy": [accuracies[value] if w in (1.0, 2.0) else 0.1 for w in weights],
            "transport_cost": [(costs or accuracies)[value]] * len(weights),
        }
        fill(study, store, key, "adult", columns, **settings)


def test_label_weights_are_shown_on_the_splits_that_all_of_them_have(study, store):
    label_weight_runs(study, store, dict.fromkeys(study.profile.label_weights, 0.8))
    key, settings = study.of_label_weight("ftm", 5)
    store.path(study.spec(key, "adult", 0, **settings)).unlink()
    found = Answers(study, store).by_label_weight("ftm")
    assert [*found] == [*study.profile.label_weights]
    assert all([*records] == [1] for records in found.values())
    assert Answers(study, store).by_label_weight("ftm-batch") == {}


def test_saturation_holds_if_only_smaller_label_weights_differ(study, store):
    values = {value: 0.8 if value < 100 else 0.82 for value in study.profile.label_weights}
    label_weight_runs(study, store, values)
    assert judged(study, store)[5] == HOLDS


def test_saturation_holds_in_part_if_a_smaller_one_does_as_well(study, store):
    values = {value: 0.8 if value < 5 else 0.82 for value in study.profile.label_weights}
    label_weight_runs(study, store, values)
    assert judged(study, store)[5] == IN_PART


def test_accuracy_and_cost_against_the_label_weight(study, store):
    rising = {value: 3.0 + value / 1000 for value in study.profile.label_weights}
    gain_when_tight = [0.81, 0.81]  # at any level: so the loose part of the claim fails
    values = {v: 0.8 if v == 0 else gain_when_tight[0] for v in study.profile.label_weights}
    label_weight_runs(study, store, values, rising)
    assert judged(study, store)[6] == IN_PART


def test_that_nothing_rises_at_the_loose_level_is_no_part_of_a_rise(study, store):
    falling = {value: 3.0 - value / 1000 for value in study.profile.label_weights}
    values = dict.fromkeys(study.profile.label_weights, 0.8)
    label_weight_runs(study, store, values, falling)
    assert judged(study, store)[6] == DOES_NOT


def test_methods_are_compared_on_the_splits_on_which_both_come_to_the_level(study, store):
    # Equal in every split; the rival comes to the level only where all are more accurate.
    for key in (*PAPER_RIVALS, "ftm-batch"):
        for seed, accuracy in enumerate((0.7, 0.9)):
            low = 0.0 if seed == 1 or key == "ftm-batch" else 0.1
            spec = study.spec(key, "german", seed)
            store.write(record(spec, **curve(accuracy, gaps=(0.3, low))))
    assert judged(study, store)[1] == IN_PART  # FTM is best: no rival is better where they meet


def test_a_representation_with_a_weight_of_its_own_does_not_begin_with_the_unfair_network(
    study, store
):
    question = next(q for q in questions() if q.experiment == "representation")
    gap = {question.gap: [0.3]}
    fill(study, store, "unfair", question.dataset, {**gap, "accuracy": [0.9]})
    low = {question.gap: [0.01, 0.0], "accuracy": [0.7, 0.6]}
    fill(study, store, "laftr", question.dataset, low)
    fill(study, store, "ftm", question.dataset, low)
    found = {a.series.key: a.interpolated.n for a in Answers(study, store).answer(question)}
    assert found == {"laftr": 0, "ftm": 2}


@pytest.mark.parametrize(
    ("spread", "state"), [(0.001, HOLDS), (0.019, HOLDS), (0.021, DOES_NOT), (0.2, DOES_NOT)]
)
def test_stability_compares_standard_deviations(study, store, spread, state):
    for key, size in (*((rival, 0.01) for rival in PAPER_RIVALS), ("ftm-batch", spread)):
        for seed in (0, 1):
            spec = study.spec(key, "adult", seed, minority_share=0.05)
            store.write(record(spec, **curve(0.8 + seed * size)))
    assert judged(study, store)[7] == state


def test_most_cases_is_more_than_half(study, store):
    names = [f"rank agreement: S={code}" for code in (0, 1)]
    for number, dataset in enumerate(study.datasets):
        for key in PAPER_RIVALS:
            fill(study, store, key, dataset, curve(**dict.fromkeys(names, 0.9)))
        own = 0.95 if number < 2 else 0.8
        fill(study, store, "ftm-batch", dataset, curve(**dict.fromkeys(names, own)))
    assert judged(study, store)[10] == DOES_NOT
    fill(study, store, "ftm-batch", study.datasets[3], curve(**dict.fromkeys(names, 0.95)))
    assert judged(study, store)[10] == HOLDS


def test_every_figure_of_the_papers_tables_is_asked_for():
    asked = questions()

    def values(experiment, quantity=None):
        return sorted(
            round(value, 9)
            for question in asked
            if question.experiment == experiment and quantity in (None, question.quantity)
            for value in question.paper.values()
        )

    told = reported()
    consistency = [v for part in told["consistency"].values() for v in part["Con"].values()]
    assert values("consistency", "consistency") == sorted(consistency)
    assert len(values("variables")) == 2 * 2 * 3 * 4
    assert len(values("joint")) == 2 * 2 * 4
    assert len(values("ranks")) == 4 * 2 * 4
    assert len(values("flips")) == 3 * 2 * 4  # German's labels are swapped
    assert len(values("representation")) == 4 * 4
    assert len(values("imbalance")) == 4


def test_the_papers_flips_are_those_of_its_full_tables():
    part = reported()["undesirable_flips"]
    for dataset in ("adult", "german", "dutch", "bank"):
        for method, table in part["full_2x2"]["S=1"][dataset].items():
            assert table[1][0] == part[dataset]["S=1"][method]
        for method, table in part["full_2x2"]["S=0"][dataset].items():
            assert table[0][1] == part[dataset]["S=0"][method]


def test_every_line_that_is_asked_for_exists():
    keys = {key for question in questions() for key in question.lines}
    assert keys <= {*SERIES}


def test_the_table_says_where_a_claim_holds():
    assert shares_held([("adult", True), ("bank", False)]) == "adult"
    assert (
        shares_held([("adult", True), ("adult", False), ("bank", True)]) == "adult (1 of 2), bank"
    )
    assert shares_held([("adult", False)]) == shares_held([]) == "nowhere"
