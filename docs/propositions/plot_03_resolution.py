r"""
Knowing more never hurts a calibrated forecast
==============================================

Two Propositions of the paper.

- **Resolution**: if forecast 2 tells at least as much as forecast 1 (whoever sees 2 can
  work out 1), then :math:`\mathbb{E}\, \varphi(\mathbb{E}[Z \mid \text{forecast}])` is at least as
  large for 2, and so its sharpness
  gap is at most as large.
- **No calibrated forecast is worse than the base rates**: they tell nothing at all, so
  their gap is the largest, and a calibrated forecast has nothing but its gap.

"Calibrated" is needed. A forecast that is not can be worse than the base rates.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import entr

import calibrant as cal

# %%
# The population
# --------------
# It rains with probability u, uniform on [0, 1]. A forecaster who cannot tell values of
# u apart within each of b equal parts of [0, 1] says the middle of the part. That is
# calibrated for every b; b = 1 is the base rate 1/2. The Brier loss is the variance of
# the rain, plus the variance of u within a part:
#
# .. math:: \mathbb{E}\, u (1 - u) + \frac{1}{12 b^2} = \frac16 + \frac{1}{12 b^2}
#
# and the log loss is the mean entropy of the middles. When b doubles, each part is cut
# in two, so the new forecaster knows at least as much, and both losses must fall.

parts = [1, 2, 4, 8, 16]


def middle(u, b):
    """The forecast of who only sees which of b parts u lies in."""
    return (np.floor(u * b) + 0.5) / b


def mean_entropy(b):
    """Mean of -p log p - (1 - p) log (1 - p) over the b forecasts."""
    p = (np.arange(b) + 0.5) / b
    return (entr(p) + entr(1 - p)).mean()


exact = {
    "brier": [1 / 6 + 1 / (12 * b**2) for b in parts],
    "log": [mean_entropy(b) for b in parts],
}

# %%
# What calibrant finds
# --------------------

rng = np.random.default_rng(3)
u = rng.random(20_000)
rain = rng.random(20_000) < u
found = [cal.evaluate(rain, probs=middle(u, b), level=0.99) for b in parts]

fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
grid = np.linspace(0, 0.9999, 1000)
for b, shade in zip((1, 2, 8), ("C3", "C1", "C0"), strict=True):
    axes[0].plot(grid, middle(grid, b), color=shade, label=f"b = {b}")
axes[0].plot([0, 1], [0, 1], ":", color="0.4")
axes[0].set(title="three calibrated forecasts", xlabel="u", ylabel="forecast")
axes[0].legend(frameon=False)
for ax, (name, values) in zip(axes[1:], exact.items(), strict=True):
    gaps = [ev.decompositions[name].sharpness_gap for ev in found]
    spread = np.array([gap.interval for gap in gaps]).T
    ax.vlines(parts, *spread, color="C0", lw=6, alpha=0.35, label="99 % interval")
    ax.plot(parts, gaps, "o", color="C0", label="estimate")
    ax.plot(parts, values, "k-", lw=1, label="exact")
    ax.set(title=f"sharpness gap, {name}", xlabel="parts b told apart")
    ax.set_xscale("log", base=2)
    ax.set_xticks(parts, parts)
axes[1].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Any population
# --------------
# The statement holds for every law, so try many: twelve kinds of rows with random masses
# and random true probabilities of four classes. A forecaster sees a grouping of the rows
# and gives each group its mean.


def loss_when_seeing(group, mass, truth, phi):
    """E φ(Z) - E φ(E[Z | group]): all the loss of a calibrated forecast."""
    member = (np.unique(group)[:, None] == group) * mass
    means = member @ truth / member.sum(axis=1, keepdims=True)
    return mass @ phi(truth) - member.sum(axis=1) @ phi(means)


PHI = {
    "brier": lambda x: (x**2).sum(axis=1),
    "log": lambda x: -entr(x).sum(axis=1),
}
chain = [np.arange(12), np.arange(12) // 2, np.arange(12) // 6, np.zeros(12)]
steps = []
for _ in range(500):
    law = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(4), 12)
    steps.append(np.diff([loss_when_seeing(s, *law, PHI["log"]) for s in chain]))
print(f"seeing less cost at least {np.min(steps):.5f} in 1500 comparisons")

# %%
# The numbers
# -----------
# The calibration error is 0 for every b; what differs is the gap. The last row is sure of
# rain whenever u > 0.2, and sure of none otherwise. It is not calibrated, and loses
# E[u; u < 0.2] + E[1 - u; u > 0.2] = 0.34, more than the 0.25 of the base rate.

numbers = {}
for i, (b, ev) in enumerate(zip(parts, found, strict=True)):
    for name, split in ev.decompositions.items():
        numbers[f"gap, {name}, b = {b}"] = split.sharpness_gap, exact[name][i]
    numbers[f"d_CAL, brier, b = {b}"] = ev.decomposition.calibration, 0.0
sure = cal.evaluate(rain, probs=(u > 0.2).astype(float), level=0.99)
numbers["loss, brier, sure of itself"] = sure.decomposition.total, 0.34

for name, (estimate, value) in numbers.items():
    low, high = estimate.interval
    print(f"{name:28} {estimate:8.4f} [{low:.4f}, {high:.4f}]  exact {value:.4f}")
    assert low <= value <= high
assert np.min(steps) > 0
