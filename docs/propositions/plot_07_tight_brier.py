r"""
A tighter bound for the Brier score
===================================

The paper compares the full calibration error with that of one coordinate: \|x - y\|² is
at least (x_i - y_i)². For probability vectors more is true. If one coordinate is off by
δ, the other k - 1 must be off by -δ together, and the cheapest way is to share it:

.. math::

   |x - y|^2 \;\ge\; \delta^2 + (k - 1) \left(\frac{\delta}{k - 1}\right)^2
   = \frac{k}{k - 1}\, \delta^2

So the confidence calibration error times k / (k - 1) is still at most the full one; with
two classes that is twice as much. ``counterpart="tight"`` asks calibrant for it; the paper's
stays the default.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

# %%
# The factor cannot be larger
# ---------------------------
# Each dot is a pair of random probability vectors; the line is k / (k - 1). Two classes
# have no freedom at all. With more, pairs come near the line but never below, and sharing
# evenly (the rings) is on it.

rng = np.random.default_rng(7)
classes = np.arange(2, 9)


def ratio(x, y):
    """|x - y|² in units of the squared difference of the first coordinate."""
    return ((x - y) ** 2).sum(axis=-1) / (x[..., 0] - y[..., 0]) ** 2


least, shared = {}, {}
fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for k in classes:
    x, y = rng.dirichlet(np.ones(k), (2, 20_000))
    found = ratio(x, y)
    least[k] = found.min()
    off = np.r_[0.05, np.full(k - 1, -0.05 / (k - 1))]
    shared[k] = ratio(np.full(k, 1 / k) + off, np.full(k, 1 / k))
    some = np.sort(found)[:2000:10]
    ax.plot(k + rng.uniform(-0.2, 0.2, len(some)), some, ".", ms=2, color="C0")
    ax.plot(k, shared[k], "o", ms=8, mfc="none", mec="C3")
ax.plot(classes, classes / (classes - 1), color="black", lw=1, label="k / (k - 1)")
ax.axhline(1, color="0.5", ls="--", lw=1, label="the paper's bound")
ax.set(xlabel="classes k", ylabel="|x - y|² / (x₁ - y₁)²", ylim=(0.9, 2.3))
ax.set(title="random pairs of probability vectors (the lowest tenth)")
ax.legend(frameon=False, ncols=2)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Two over-confident models
# -------------------------
# Three classes, forecasts g spread evenly over the simplex, so that E (h - 1/3)² = 7/72
# and E|g - 1/3|² = 1/6. Both models claim too much for their predicted class.
#
# - *Even*: what it claims too much, 0.4 (h - 1/3), belongs to the others in equal parts.
# - *Shrunk*: the truth is 0.8 g + 0.2 / 3, so larger entries give away more.
#
# .. code-block:: text
#
#                   even                        shrunk
#    confidence     0.16 · 7/72 = 7/450         0.04 · 7/72 = 7/1800
#    tight          3/2 of it   = 7/300         3/2 of it   = 7/1200
#    full           (same)      = 7/300         0.04 / 6    = 1/150

g = rng.dirichlet(np.ones(3), 40_000)
h = g.max(axis=1, keepdims=True)
truths = {
    "even": g + (h - 1 / 3) * np.where(g == h, -0.4, 0.2),
    "shrunk": 0.8 * g + 0.2 / 3,
}
exact = {
    "even": {"paper": 7 / 450, "tight": 7 / 300, "full": 7 / 300},
    "shrunk": {"paper": 7 / 1800, "tight": 7 / 1200, "full": 1 / 150},
}

numbers = {}
for name, truth in truths.items():
    y = (rng.random((len(g), 1)) > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
    for counterpart in ("paper", "tight"):
        ev = cal.evaluate(y, probs=g, counterpart=counterpart, level=0.99)
        estimate = ev.decomposition.calibration
        numbers[f"{name}, {counterpart}"] = estimate, exact[name][counterpart]

fig, axes = plt.subplots(1, 2, figsize=(7, 2.4), layout="constrained")
for ax, name in zip(axes, exact, strict=True):
    for i, counterpart in enumerate(("paper", "tight")):
        estimate, value = numbers[f"{name}, {counterpart}"]
        ax.hlines(i, *estimate.interval, color="C0", lw=8, alpha=0.35)
        ax.plot(estimate, i, "o", color="C0")
        ax.plot(value, i, "|", color="black", ms=18, mew=2)
    ax.axvline(exact[name]["full"], color="C3", lw=1.5)
    ax.text(exact[name]["full"], 1.55, "full error", color="C3", ha="center")
    ax.set_yticks([0, 1], ["paper's", "tight"])
    ax.set_title(name, loc="left")
    ax.set(xlim=(0, 1.25 * exact[name]["full"]), ylim=(-0.5, 1.5))
    ax.locator_params(axis="x", nbins=5)
    ax.spines[["top", "right"]].set_visible(False)

# %%
# The numbers
# -----------

for name, (estimate, value) in numbers.items():
    low, high = estimate.interval
    print(f"{name:14} {estimate:.4f} [{low:.4f}, {high:.4f}]  exact {value:.4f}")
    assert low <= value <= high
for k in classes:
    assert least[k] >= k / (k - 1) - 1e-9
    assert np.isclose(shared[k], k / (k - 1))
