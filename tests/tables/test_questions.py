"""What must be decided about columns before a model learns from them."""

import pandas as pd

from fairmatch.tables.questions import ask
from fairmatch.tables.roles import Roles


def test_a_column_that_shows_one_value_of_the_label_does_not_determine_it():
    repaid = ["yes", "yes", "no"] * 40
    loss = [0 if word == "yes" else 100 + row for row, word in enumerate(repaid)]
    people = pd.DataFrame({"sex": ["f", "m"] * 60, "repaid": repaid, "loss": loss})
    roles = Roles(sensitive="sex", label="loss").read(people)
    found = ask(people, roles, sees_groups=True)
    assert found.open == ("column 'repaid' shows where the label 'loss' is 0",)
    roles = Roles(sensitive="sex", label="repaid").read(people)
    assert ask(people, roles, sees_groups=True).notes == (
        "column 'loss' determines the label 'repaid'",
    )
