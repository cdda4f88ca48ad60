"""The smallest difference that given numbers of people can show."""

import numpy as np
import pytest

from fairmatch.cli.main import main
from fairmatch.exceptions import InputError
from fairmatch.measures import detectable_difference, detectable_mean_difference
from fairmatch.measures.intervals import rate_difference
from fairmatch.measures.planning import chance_maximum


@pytest.mark.parametrize(
    ("sizes", "rate"), [((400, 1500), 0.5), ((60, 1500), 0.5), ((300, 300), 0.2)]
)
def test_a_difference_of_this_size_is_shown_in_four_of_five_tables(sizes, rate):
    # The interval that the audit states excludes 0 with the promised probability.
    found = detectable_difference(sizes, rate=rate)
    generator = np.random.default_rng(0)
    own = rate + found if rate + found <= 1.0 else rate - found
    draws = generator.binomial(sizes, (own, rate), (2000, 2))
    shown = [rate_difference(tuple(hits), sizes, 0.95) for hits in draws]
    share = np.mean([low > 0.0 or high < 0.0 for low, high in shown])
    assert share == pytest.approx(0.8, abs=0.04)


def test_the_difference_is_the_one_of_equal_groups_in_textbooks():
    # Fleiss, Levin and Paik: 93 people per group for 0.5 against 0.7, level 5 %, power 80 %.
    assert detectable_difference((93, 93), rate=0.5) == pytest.approx(0.2, abs=0.002)


def test_more_comparisons_need_a_larger_difference():
    one, three = (detectable_difference((60, 1500), n_comparisons=k) for k in (1, 3))
    assert three > one


def test_too_few_people_can_show_nothing():
    assert np.isnan(detectable_difference((2, 2)))
    with pytest.raises(InputError, match="two positive numbers"):
        detectable_difference((0, 5))


def test_a_difference_of_means_is_shown_in_four_of_five_tables():
    sizes, deviations = (80, 300), (1.0, 2.0)
    found = detectable_mean_difference(sizes, deviations)
    generator = np.random.default_rng(0)
    first = generator.normal(found, deviations[0], (4000, sizes[0]))
    second = generator.normal(0.0, deviations[1], (4000, sizes[1]))
    error = np.sqrt(first.var(axis=1) / sizes[0] + second.var(axis=1) / sizes[1])
    share = np.mean(np.abs(first.mean(axis=1) - second.mean(axis=1)) > 1.96 * error)
    assert share == pytest.approx(0.8, abs=0.03)


def test_the_gap_that_chance_alone_makes():
    error = np.sqrt(0.25 * (1 / 500 + 1 / 200))
    assert chance_maximum([500, 200]) == pytest.approx(error * np.sqrt(2 / np.pi), rel=0.05)


def test_the_command_prints_every_pair(capsys):
    assert main(["plan", "--sizes", "1500,400,60", "--positive-share", "0.3"]) == 0
    printed = capsys.readouterr().out
    assert "1,500 and 60   0.208                   0.359              0.246" in printed
    rates = "--positive-share", "0.3", "--error-rates", "0.8", "0.1", "--deviation", "12"
    assert main(["plan", "--sizes", "1500,400", *rates]) == 0
    header, row = capsys.readouterr().out.splitlines()[1:3]
    assert header.split()[1:] == ["demographic_parity_gap", "true_positive_gap",
                                  "false_positive_gap", "mean_parity_gap"]  # fmt: skip
    wanted = [
        detectable_difference((400, 1500)),
        detectable_difference((120, 450), rate=0.8),
        detectable_difference((280, 1050), rate=0.1),
        detectable_mean_difference((400, 1500), (12, 12)),
    ]
    assert [float(value) for value in row.split()[3:]] == pytest.approx(wanted, abs=6e-3)
    assert main(["plan", "--sizes", "3,3", "--error-rates", "0.8", "0.1"]) == 2
    assert "without --positive-share" in capsys.readouterr().err
    assert main(["plan", "--sizes", "3,3"]) == 0
    assert "none: at this rate" in capsys.readouterr().out
    assert main(["plan", "--sizes", "ten"]) == 2
    assert "at least two groups" in capsys.readouterr().err
