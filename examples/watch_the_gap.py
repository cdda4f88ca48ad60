r"""
Monitor the gap of a model in production
========================================

A model that was fair at training time may become unfair later. A monitor checks the gap every day.
If the gap never exceeds the bound, the probability of any false alarm, over all days together, is
at most 5%.
"""

# %%
# Decisions that come day by day
# ------------------------------
# After day 40 the rate of one group falls from 0.40 to 0.25. Two monitors process the same people:
# one uses all people since the start, the other the last 2,000 to 4,000.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from fairmatch import GapMonitor

generator = np.random.default_rng(0)
monitor = GapMonitor(max_gap=0.05, groups=["f", "m"])
forgetful = GapMonitor(max_gap=0.05, groups=["f", "m"], window=2000)
for day in range(1, 81):
    sex = generator.choice(["f", "m"], 100)
    rate = np.where(sex == "f", 0.40 if day <= 40 else 0.25, 0.42)
    hired = generator.random(100) < rate
    for one in (monitor, forgetful):
        one.update(hired, sex, period=f"day {day}")

for one in (monitor, forgetful):
    print(one)

# %%
# The first alarm of each:

for one in (monitor, forgetful):
    alarms = [state.period for state in one.history if state.alarm]
    print(alarms[0] if alarms else "no alarm")

# %%
# A monitor is saved as a small JSON file, and tomorrow's job continues from it.

path = monitor.save(Path(tempfile.mkdtemp()) / "monitor.json")
print(GapMonitor.load(path).state.n_people)

# %%
# The curve
# ---------
# The confidence band holds at all times at once.

days = np.arange(1, 81)
low, high = (np.array([getattr(s, name) for s in monitor.history]) for name in ("low", "high"))
plt.fill_between(days, low, high, alpha=0.2, label="band")
for one, label in ((monitor, "since the start"), (forgetful, "with a window")):
    plt.plot(days, [state.value for state in one.history], label=label)
plt.axhline(0.05, color="grey", linewidth=1, label="bound")
plt.xlabel("day")
plt.ylabel("gap of selection rates")
plt.ylim(0, 0.4)
_ = plt.legend()
