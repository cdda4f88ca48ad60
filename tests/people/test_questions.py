"""What must be decided about columns before a model learns from them."""

import pandas as pd

from fairmatch.people.roles import Roles, ask


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


def test_a_column_that_holds_the_group_is_a_note_where_the_model_may_see_the_group():
    people = pd.DataFrame({"sex": ["f", "m"] * 60, "hired": [0, 0, 1, 1] * 30})
    people["title"] = people.sex.map({"f": "Ms", "m": "Mr"})
    people["form"] = people.title.where(people.index > 1, "Mr")
    roles = Roles(sensitive="sex", label="hired").read(people)
    found = ask(people, roles, sees_groups=True)
    assert found.open == ()
    assert [line.partition(" (")[0] for line in found.notes] == [
        "column 'title' determines the group, which the model sees anyway",
        "column 'form' nearly determines the group",
    ]
    assert found.notes[1].endswith(", which the model sees anyway")
    hidden = ask(people, roles, sees_groups=False)
    assert hidden.open == ("column 'title' determines the group",)
    assert ask(people, roles, sees_groups=True, kept=["title", "form"]).notes == ()
