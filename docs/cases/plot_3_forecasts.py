"""
Forecasts: NBA games
====================

FiveThirtyEight published a probability for the first-named team of each of 8,886 games of
the National Basketball Association, and checked them in public (fivethirtyeight/checking-our-work-data,
CC BY 4.0). Games of one day share news and teams' form, so a day is a cluster:

.. code-block:: python

   found = cal.study(won, probs=forecast, cluster=day, folds=5, methods="platt")
"""

import lzma
from pathlib import Path

import calibrant as cal
from calibrant import plot

record = lzma.decompress(Path("forecasts.json.xz").read_bytes())
found = cal.Study.from_json(record)
forecast, platt, trivial = found
plot.reliability(forecast)

# %%
# Between forecasts of 0.3 and 0.9 the curve lies below the diagonal: teams listed first won
# less often than forecast.

gap = forecast.metrics["confidence_gap"]
print(f"mean forecast - observed frequency: {gap:.3f}, interval {gap.interval}")

# %%
# Is it worth correcting? The calibration error is small against the Brier score, because
# games are hard to foresee; the interval says that it is not chance.

parts = forecast.decomposition
low, high = parts.calibration.interval
print(f"Brier score        {parts.total:.4f}")
print(f"calibration error  {parts.calibration:.4f} [{low:.4f}, {high:.4f}]")
print(f"sharpness gap      {parts.sharpness_gap:.4f}")

# %%
# Platt scaling, two numbers fitted on the other folds, shifts and stretches the log-odds.
# Every game is corrected by numbers that were fitted without its day.

plot.reliability(platt)

# %%
# In the vocabulary of forecasting, skill compares the Brier score with that of always
# forecasting the base rate:

for ev in found:
    skill = 1 - ev.metrics["brier"] / ev.metrics["unc"]
    low, high = ev.decomposition.calibration.interval
    print(f"{ev.name:17} skill {skill:.3f}  calibration error [{low:.4f}, {high:.4f}]")

# %%
# **What follows.** Two numbers take most of the error away and raise the skill. Mean replacement,
# which only says how often the favourites won, is calibrated, too, and has a third less skill:
# calibration alone does not make a forecast good.
