r"""
The sharpness gap is never negative
===================================

The diagram of the paper draws a band around the calibration curve. Its height is the
pointwise sharpness gap ρ: the full loss at confidence p, minus the calibration error
there.

.. math:: \rho(p) = \mathbb{E}\bigl[d_\varphi(y, g) \mid h = p\bigr] - d_{\varphi_1}\bigl(m(p), p\bigr)

A band of negative height could not be drawn. The paper's Proposition says that there is
none, under the condition of the Lemma on confidence calibration: the full divergence is
never below the 1-D divergence of a coordinate.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

# %%
# The population
# --------------
# Three classes, g spread evenly over the simplex, truth 0.8 g + 0.2 / 3. Given the
# confidence h, the second class is uniform on an interval of half-width w around
# (1 - h) / 2, with w = (3h - 1) / 2 below h = 1/2 and (1 - h) / 2 above. So
#
# .. math::
#
#    S(h) = \mathbb{E}\bigl[|g|^2 \mid h\bigr] = h^2 + \frac{(1 - h)^2}{2} + \frac{2 w^2}{3} ,
#
# the loss at h is :math:`1 - 2\, (0.8\, S + 0.2/3) + S`, and the calibration error there is
# :math:`(0.2\, h - 0.2/3)^2`.


def exact_gap(h):
    """ρ(h) of the Brier score."""
    w = np.minimum(3 * h - 1, 1 - h) / 2
    square = h**2 + (1 - h) ** 2 / 2 + 2 * w**2 / 3
    return 1 - 2 * (0.8 * square + 0.2 / 3) + square - (0.2 * (h - 1 / 3)) ** 2


# %%
# What calibrant finds
# --------------------
# The curve is the paper's, with a bandwidth of 0.03. The kernel is not sharp, so near the
# ends, where rows lie on one side only, the estimate is off; elsewhere it follows ρ.

rng = np.random.default_rng(8)
g = rng.dirichlet(np.ones(3), 50_000)
truth = 0.8 * g + 0.2 / 3
y = (rng.random((len(g), 1)) > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
ev = cal.evaluate(y, probs=g, level=0.99)
curve = cal.evaluate(y, probs=g, bandwidth=0.03, interval=None).curve
inside = (curve.confidence > 0.4) & (curve.confidence < 0.95)
h, found_gap = curve.confidence[inside], curve.sharpness_gap[inside]

# %%
# The condition is needed
# -----------------------
# The spherical score has φ = \|x\| and does not meet it. Let the second and the third of
# three classes be equally likely and the first impossible, and let a model give t to the
# first. Then all of ρ is what the 1-D divergence does not see of the other two.


def norm(p):
    """Length of the vector (p, 1 - p)."""
    return np.hypot(p, 1 - p)


spherical = cal.Divergence(
    "spherical",
    phi=lambda x: np.linalg.norm(x, axis=1),
    gradient=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    phi_1d=norm,
    derivative_1d=lambda p: (2 * p - 1) / norm(p),
)
brier = cal.Divergence(
    "Brier",
    phi=lambda x: (x**2).sum(axis=1),
    gradient=lambda x: 2 * x,
    phi_1d=lambda p: p**2,
    derivative_1d=lambda p: 2 * p,
)


def gap_at(divergence, t):
    """ρ where the truth is (0, 1/2, 1/2) and the forecast (t, (1 - t)/2, (1 - t)/2)."""
    forecast = np.column_stack([t, (1 - t) / 2, (1 - t) / 2])
    truth = np.broadcast_to([0, 0.5, 0.5], forecast.shape)
    return divergence.between(truth, forecast) - divergence.on_unit(np.zeros_like(t), t)


t = np.linspace(1 / 3, 1, 200)
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
fine = np.linspace(1 / 3, 1, 300)
left.plot(fine, exact_gap(fine), color="black", lw=1, label="exact")
left.plot(h, found_gap, color="C3", lw=2.5, alpha=0.6, label="calibrant")
left.set(xlabel="confidence", ylabel="ρ", ylim=(0, None), title="Brier score")
for divergence, style, colour in ((brier, "-", "C0"), (spherical, "--", "C3")):
    right.plot(t, gap_at(divergence, t), style, color=colour, label=divergence.name)
right.axhline(0, color="black", lw=0.8)
right.set(xlabel="probability t of an impossible class", title="ρ of two scores")
for ax in (left, right):
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)

# %%
# Making a `Divergence` checks the condition, and ``dominates`` says whether it holds.

print({d.name: d.dominates for d in (brier, spherical)})
assert brier.dominates
assert not spherical.dominates

# %%
# The numbers
# -----------
# The mean of ρ over all rows is the sharpness gap, 17/30 - 7/1800 = 1013/1800.

numbers = {"sharpness gap": (ev.decomposition.sharpness_gap, 1013 / 1800)}
for name, (estimate, exact) in numbers.items():
    low, high = estimate.interval
    print(f"{name} {estimate:.4f} [{low:.4f}, {high:.4f}]  exact {exact:.4f}")
    assert low <= exact <= high
print(f"largest difference of the curves {abs(found_gap - exact_gap(h)).max():.4f}")
assert abs(found_gap - exact_gap(h)).max() < 0.03
assert exact_gap(fine).min() >= 0
assert gap_at(brier, t).min() >= 0 > gap_at(spherical, t).min()
