"""
Where the plug-in misleads
==========================

The Theorem on consistency asks that confidences leave no region empty, and that the
bandwidth shrinks. Real networks are nearly always nearly sure: most rows lie between 0.99
and 1, where one bandwidth of 0.05 on the probability scale smooths everything together.
What is published with it can then be far off, in either direction.

This page has a population of that kind, in which the truth is known. It compares three
estimates of the Brier calibration error:

- **plug-in**: the paper's Theorem, with its bandwidth of 0.05;
- **direct**: the mean of (m(h) - h)², as the authors' code computes it, same bandwidth;
- **debiased**: calibrant's default. It compares residuals of neighbouring rows, never a row
  with itself, and its neighbourhoods follow the data.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

import calibrant as cal

# %%
# The population
# --------------
# The log-odds z of the confidences are normal with mean 5 and standard deviation 2.5: two
# thirds of all rows have confidence above 0.98. The accuracy is the confidence with its
# log-odds multiplied by a. With a = 1 the model is calibrated; with a = 1/2 it is
# over-confident.

models = {"calibrated": 1.0, "over-confident": 0.5}


def expect(f):
    """E f(z), by numerical integration."""
    return quad(lambda z: norm.pdf(z, 5, 2.5) * f(z), -15, 25, limit=200)[0]


exact = {
    name: expect(lambda z, a=a: (expit(a * z) - expit(z)) ** 2)
    for name, a in models.items()
}

# %%
# What calibrant finds
# --------------------
# Twelve samples of 4,000 rows each.

ways = {
    "plug-in": {"bandwidth": 0.05, "estimator": "plugin"},
    "direct": {"bandwidth": 0.05},
    "debiased": {},
}


def draw(rng, a, n=4000):
    """Outcomes and confidences."""
    z = rng.normal(5, 2.5, n)
    return rng.random(n) < expit(a * z), expit(z)


def estimates(correct, confidence):
    """The three estimates of one sample."""
    given = {"confidence": confidence}
    return [cal.calibration_error(correct, **given, **way) for way in ways.values()]


rng = np.random.default_rng(10)
found = {
    name: np.array([estimates(*draw(rng, a)) for _ in range(12)], dtype=float)
    for name, a in models.items()
}

fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True, layout="constrained")
for ax, (name, samples) in zip(axes, found.items(), strict=True):
    for i, colour in enumerate(("C1", "C2", "C0")):
        ax.plot(100 * samples[:, i], np.full(12, i), "o", color=colour, alpha=0.4)
    ax.axvline(100 * exact[name], color="black", lw=1)
    ax.text(100 * exact[name], -0.72, "exact", ha="center")
    ax.set(xlabel="100 · d_CAL", xlim=(-0.15, 2), ylim=(2.5, -0.6))
    ax.set_title(f"{name} model", pad=20)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_yticks(range(3), list(ways))

# %%
# The plug-in finds an error of 0.6 to 0.9 in a model that has none: as much as the
# over-confident model really has. The direct estimate does not stray that far, but it
# misses about a third of the real error, since the curve it measures has been smoothed.
# The debiased estimates scatter around the truth in both.
#
# The curves show how it happens. At bandwidth 0.05 the curve of the calibrated model
# leaves the diagonal: above 0.85 the many rows near 1 drag it up, and below, where rows
# are few, it follows their noise.

correct, confidence = draw(rng, 1.0)
sample = cal.evaluate_pairs(correct, confidence, level=0.99, name="calibrated")
fig, ax = plt.subplots(figsize=(4.6, 3.4), layout="constrained")
ax.plot([0, 1], [0, 1], ":", color="0.4")
for curve, label, colour in (
    (sample.paper_curve, "bandwidth 0.05", "C1"),
    (sample.curve, "calibrant's default", "C0"),
):
    ax.plot(curve.confidence, curve.accuracy, color=colour, label=label)
ax.set(xlabel="confidence", ylabel="accuracy", xlim=(0.4, 1), ylim=(0.4, 1))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# The numbers
# -----------

over = cal.evaluate_pairs(*draw(rng, 0.5), level=0.99)
numbers = {
    "calibrated": (sample.decomposition.calibration, exact["calibrated"]),
    "over-confident": (over.decomposition.calibration, exact["over-confident"]),
}
for name, (estimate, value) in numbers.items():
    low, high = estimate.interval
    print(f"{name:15} {estimate:.5f} [{low:.5f}, {high:.5f}]  exact {value:.5f}")
    assert low <= value <= high

for name, samples in found.items():
    means, errors = samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(12)
    off = (means - exact[name]) / errors
    print(
        f"{name:15} standard errors from the truth:",
        dict(zip(ways, off.round(1).tolist(), strict=True)),
    )
    assert abs(off[2]) < 4 < min(abs(off[:2]))
