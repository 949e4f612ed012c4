r"""
Every proper score holds a calibration error
============================================

The paper's first Lemma. Take a proper score that is a Bregman divergence :math:`d_\varphi`,
and let :math:`X` be the forecast and :math:`Z` what it forecasts. Then the mean loss splits into
the sharpness gap and the calibration error, which are never negative:

.. math::

   \mathbb{E}\, d_\varphi(Z, X)
   = \bigl(\mathbb{E}\, \varphi(Z) - \mathbb{E}\, \varphi(\mathbb{E}[Z \mid X])\bigr)
   + \mathbb{E}\, d_\varphi(\mathbb{E}[Z \mid X], X) .

The calibration error is the same divergence again, between what comes true given the
forecast and the forecast itself. So whoever picks a loss has also picked a calibration
error, and the two belong in one table. The sharpness gap is the loss that would remain
if each forecast were replaced by what comes true given it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.special import entr, rel_entr

import calibrant as cal

# %%
# The population
# --------------
# Forecasts p of a yes-or-no event are uniform on [0, 1], and the event comes true with
# probability m(p) = p². At each p the loss, the gap and the error are:


def parts_at(p):
    """Loss, sharpness gap and calibration error of both scores where p is forecast."""
    m = p**2
    brier = m * (1 - p) ** 2 + (1 - m) * p**2, m * (1 - m), (m - p) ** 2
    loss = -m * np.log(p) - (1 - m) * np.log1p(-p)
    error = rel_entr(m, p) + rel_entr(1 - m, 1 - p)
    return {"brier": brier, "log": (loss, entr(m) + entr(1 - m), error)}


# %%
# At every p the two shaded parts add up to the line, which was computed on its own.

p = np.linspace(0.001, 0.999, 400)
fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for ax, (name, (loss, gap, error)) in zip(axes, parts_at(p).items(), strict=True):
    ax.fill_between(p, gap, color="C0", alpha=0.35, label="sharpness gap")
    ax.fill_between(
        p, gap, gap + error, color="C3", alpha=0.6, label="calibration error"
    )
    ax.plot(p, loss, color="black", lw=1.5, label="loss")
    ax.set(title=f"{name} score", xlabel="forecast p", ylabel="expected loss at p")
    ax.set(xlim=(0, 1), ylim=(0, 1.25 * loss.max()))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, loc="upper left")

# %%
# The means over p of the Brier score are 1/6 = 2/15 + 1/30. Those of the log score come
# from numerical integration; its loss is 1/2.

exact = {
    name: [quad(lambda p, n=name, i=i: parts_at(p)[n][i], 0, 1)[0] for i in range(3)]
    for name in ("brier", "log")
}
assert np.allclose(exact["brier"], [1 / 6, 2 / 15, 1 / 30])
assert np.isclose(exact["log"][0], 1 / 2)

# %%
# What calibrant finds
# --------------------

rng = np.random.default_rng(2)
forecast = rng.random(20_000)
outcome = rng.random(20_000) < forecast**2
ev = cal.evaluate(outcome, probs=forecast, level=0.99)

numbers = {}
for name, values in exact.items():
    split = ev.decompositions[name]
    numbers[f"{name}, loss"] = split.total, values[0]
    numbers[f"{name}, gap"] = split.sharpness_gap, values[1]
    numbers[f"{name}, error"] = split.calibration, values[2]

fig, ax = plt.subplots(figsize=(8, 2.8), layout="constrained")
for i, (estimate, value) in enumerate(numbers.values()):
    ax.hlines(i, *np.subtract(estimate.interval, value), color="C0", lw=6, alpha=0.35)
    ax.plot(estimate - value, i, "o", color="C0")
ax.axvline(0, color="black", lw=1)
ax.set_yticks(range(len(numbers)), list(numbers))
ax.set(title="estimate and 99 % interval, minus the exact value", xlim=(-0.015, 0.015))
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)

# %%
# Labels, not probabilities
# -------------------------
# The paper's Z is the distribution of the label given everything known about a row. Data
# hold only the label. Its own randomness then sits in the gap, the same amount for every
# model, and the calibration error does not change. calibrant takes both. With the true
# probabilities for labels the gap is 0 here, since p says all there is to know.

soft = cal.evaluate(
    np.column_stack([1 - forecast**2, forecast**2]),
    probs=np.column_stack([1 - forecast, forecast]),
    target="positive",
)
print(f"gap with labels        {ev.decomposition.sharpness_gap:.4f}")
print(f"gap with probabilities {soft.decomposition.sharpness_gap:.4f}")
assert abs(soft.decomposition.sharpness_gap) < 1e-3

# %%
# The numbers
# -----------

for name, (estimate, value) in numbers.items():
    low, high = estimate.interval
    print(f"{name:12} {estimate:8.4f} [{low:.4f}, {high:.4f}]  exact {value:.4f}")
    assert low <= value <= high
