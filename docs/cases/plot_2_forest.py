"""
A forest: income from census data
=================================

A random forest of 100 trees predicts whether a person of the UCI data set Adult earns
more than 50,000 dollars a year (forecasts for the test set by zygmuntz/classifier-calibration).
A forest's probability is the share of its trees that vote for a class, so there are only 101
values, and 0 and 1 are among them. A fifth of the 16,281 people fits a temperature:

.. code-block:: python

   found = cal.study(earns_more, probs=share_of_trees, methods="temperature")
"""

import lzma
from pathlib import Path

import calibrant as cal
from calibrant import plot

record = lzma.decompress(Path("forest.json.xz").read_bytes())
found = cal.Study.from_json(record)
print(found.table())

# %%
# The log loss of the forest is infinite: for some people all trees agreed, and all were wrong.

forest, scaled, _ = found
print(f"certain and wrong: {forest.infinite_rows:.0f} of {forest.rows:,}")

# %%
# An infinite loss is not a fault of the score. Whoever bets at these odds loses everything.
# Clipping the probabilities would hide it, and the clip would decide the number.

plot.reliability(forest)

# %%
# The forest is not over-confident, and not under-confident either: low forecasts are too
# low and high ones too high. The two nearly cancel in the mean, which is
# why the gap between mean forecast and observed frequency is a poor summary.

gap = forest.metrics["confidence_gap"]
print(f"mean forecast - observed frequency: {gap:+.3f}")
for finding in forest.audit():
    print(finding)

# %%
# **What follows.** Temperature scaling mixes in a small share of the uniform distribution
# where labels had probability 0, so the loss becomes finite, and it removes most of the
# calibration error.

plot.reliability(scaled)

# %%
# The sharpness gap stays what it was. If it is too large, the forest needs better variables,
# not another calibration.
