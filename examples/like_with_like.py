r"""
Compare like with like: wages within a title
============================================

Women earn less than men in this company. How large is the difference between people with the same
title and similar experience?
"""

# %%
# The staff
# ---------
# Of the men, 20% are directors and 30% are heads of a department; of the women, 5% and 25%. Women
# with the same title and experience as men earn 4% less.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fairmatch import audit

random = np.random.default_rng(0)
n_people = 4000
sex = random.choice(["women", "men"], n_people)
level = random.random(n_people)
title = np.select(
    [level < np.where(sex == "men", 0.2, 0.05), level < np.where(sex == "men", 0.5, 0.3)],
    ["director", "head"],
    "clerk",
)
years = random.integers(0, 30, n_people)
drift = pd.Series(title).map({"director": 0.7, "head": 0.3, "clerk": 0.0}) + 0.01 * years
wage = 2500 * np.exp(drift - 0.04 * (sex == "women") + random.normal(0, 0.1, n_people))
staff = pd.DataFrame({"title": title, "years": years})

# %%
# The audit
# ---------
# Years have more than ten different values, so they are split into five bands.

found = audit(
    wage, sensitive_features=sex, given=staff, kind="number", model_name="wages", n_resamples=200
)
(one,) = found.conditional
print(f"{one.group} minus {one.reference}: {one.marginal:+.0f} overall, "
      f"{one.adjusted.value:+.0f} with the same title and years "
      f"[{one.adjusted.low:+.0f}, {one.adjusted.high:+.0f}]")  # fmt: skip
print(f"In per cent: {one.percent.value:+.1%} [{one.percent.low:+.1%}, {one.percent.high:+.1%}]")
print(f"Mean absolute difference {one.absolute:.0f}; expected by chance {one.chance:.0f}")

# %%
# The figure shows the difference within every stratum; larger dots are larger strata. The dashed
# line is the overall difference, and the solid line the difference within strata.

figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
strata = sorted((own for own in one.strata if own.weight), key=lambda own: own.levels[1])
gaps = [own.difference for own in strata]
axes.scatter(gaps, range(len(strata)), s=[1500 * own.weight for own in strata], color="tab:orange")
axes.set_yticks(range(len(strata)), [own.label for own in strata], fontsize=7)
axes.axvline(0.0, color="black", linewidth=0.5)
axes.axvline(one.marginal, color="tab:grey", linestyle="--")
axes.axvline(one.adjusted.value, color="tab:orange")
axes.set_xlabel(f"mean wage of {one.group} minus that of {one.reference}")
plt.show()

# %%
# Limits
# ------
# If women are kept from becoming directors, the title itself is affected by discrimination, and the
# difference within strata does not include that part.
