"""
More rows, less error
=====================

The paper's Theorem: the plug-in estimate of the calibration error tends to the true one
as the number of rows n grows, if the bandwidth σ shrinks, but not too fast (n σ² / log n
must grow), the accuracy is a continuous function of the confidence, and no region of
confidences is left empty.

Two things follow that are easy to overlook. With a **fixed** bandwidth, as in the paper's
own figures, more rows do not help beyond a point: the estimate tends to the error of a
smoothed curve. And how fast the error falls depends on the estimator.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

# %%
# The population
# --------------
# Confidences p uniform on [0, 1], accuracy p². The Brier calibration error is
# E (p² - p)² = 1/30. With a fixed bandwidth the kernel regression tends to the kernel's
# mean of p², which numerical integration gives, and the plug-in estimate to the mean of
# m² - p² - 2p (p² - p), with that m.


def smoothed(sigma, nodes=2000):
    """Where the plug-in estimate with a fixed bandwidth ends up."""
    p = (np.arange(nodes) + 0.5) / nodes
    kernel = np.exp(-0.5 * ((p[:, None] - p) / sigma) ** 2)
    m = kernel @ p**2 / kernel.sum(axis=1)
    return np.mean(m**2 - p**2 - 2 * p * (p**2 - p))


exact, limit = 1 / 30, smoothed(0.05)

# %%
# What calibrant finds
# --------------------
# Three estimates, on ten samples of each size: the plug-in with σ = 0.05; the plug-in
# with σ = n^(-1/3) / 2, which meets the Theorem's condition; and calibrant's default, whose
# neighbourhoods shrink like 1/√n and which is debiased, so that it may.

sizes = [300, 1500, 7000, 30_000]
ways = {
    "plug-in, σ = 0.05": lambda n: {"bandwidth": 0.05, "estimator": "plugin"},
    "plug-in, σ = n^(-1/3) / 2": lambda n: {
        "bandwidth": n ** (-1 / 3) / 2,
        "estimator": "plugin",
    },
    "calibrant's default": lambda n: {},
}
rng = np.random.default_rng(9)


def estimates(n):
    """One sample of n rows, estimated in every way."""
    p = rng.random(n)
    correct = rng.random(n) < p**2
    return [
        cal.evaluate_pairs(
            correct, p, interval=None, **way(n)
        ).decomposition.calibration
        for way in ways.values()
    ]


found = np.array([[estimates(n) for _ in range(10)] for n in sizes], dtype=float)
rms = np.sqrt(((found - exact) ** 2).mean(axis=1))

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
for i, (name, marker) in enumerate(zip(ways, "s^o", strict=True)):
    left.loglog(sizes, rms[:, i], marker=marker, color=f"C{i}", label=name)
    spread = (np.arange(10) - 4.5) * 0.012
    for size, sample in zip(sizes, found[:, :, i], strict=True):
        x = size * np.exp(spread + 0.25 * (i - 1))
        right.semilogx(x, sample, marker=marker, ls="", ms=3, color=f"C{i}")
left.axhline(exact - limit, color="C0", ls=":", label="bias of σ = 0.05")
left.plot(sizes, 0.09 / np.sqrt(sizes), color="0.6", lw=1, label="slope of 1/√n")
left.set(xlabel="rows n", title="root mean square error", ylim=(2e-4, 3e-2))
left.legend(frameon=False, fontsize=8, loc="lower left")
right.axhline(exact, color="black", lw=1)
right.axhline(limit, color="C0", ls=":")
right.set(xlabel="rows n", title="all estimates; the line is exact")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

# %%
# The fixed bandwidth stays on its dotted line. The others keep falling.

# %%
# The numbers
# -----------

p = rng.random(30_000)
ev = cal.evaluate_pairs(rng.random(30_000) < p**2, p, level=0.99)
numbers = {"d_CAL, n = 30,000": (ev.decomposition.calibration, exact)}
for name, (estimate, value) in numbers.items():
    low, high = estimate.interval
    print(f"{name}: {estimate:.5f} [{low:.5f}, {high:.5f}]  exact {value:.5f}")
    assert low <= value <= high

fixed, shrinking, default = found[-1].mean(axis=0)
print(f"mean of ten at n = 30,000: fixed {fixed:.5f}, shrinking {shrinking:.5f},")
print(f"default {default:.5f}; exact {exact:.5f}, limit of the fixed one {limit:.5f}")
error = found[-1].std(axis=0, ddof=1) / np.sqrt(10)
assert abs(fixed - limit) < 4 * error[0] < abs(fixed - exact)
assert abs(default - exact) < 4 * error[2]
assert rms[-1, 1] < rms[0, 1] / 3
