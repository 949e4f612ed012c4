r"""
Of all L^q calibration errors, only L² has a proper score
=========================================================

ECE is the mean distance between confidence and accuracy. Raise the distance to a power q
and you get the L^q calibration errors, ECE being q = 1. The paper's Proposition: only
for q = 2 is there a proper score whose calibration error it is, and that is the Brier
score.

Why should one care? Because a calibration error without a proper score has no loss to
stand beside. The natural candidate, the mean of \|outcome - forecast\|^q, rewards lies
unless q = 2.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import beta

import calibrant as cal

# %%
# Lying pays, unless q = 2
# ------------------------
# An event comes true one time in five. Someone who forecasts p loses, on average,
#
# .. math:: 0.8\, p^q + 0.2\, (1 - p)^q, \qquad\text{least at } p = \frac{1}{1 + 4^{1/(q - 1)}} ,
#
# and for q = 1 at p = 0, the median. With a proper score it would be least at 0.2.

powers = [1, 2, 3, 4]
p = np.linspace(0, 1, 401)


def score(p, q):
    """Expected loss of forecasting p."""
    return 0.8 * p**q + 0.2 * (1 - p) ** q


best = {q: 0.0 if q == 1 else 1 / (1 + 4 ** (1 / (q - 1))) for q in powers}

# %%
# In the Lemma the loss minus the calibration error, the gap, does not depend on the
# forecast, only on what comes true: E φ(Z) - φ(E Z). Here it does, unless q = 2: the
# right picture has one flat line.

gap = {q: score(p, q) - abs(p - 0.2) ** q for q in powers}

fig, axes = plt.subplots(1, 2, figsize=(8, 3.3), layout="constrained")
for q, style in zip(powers, (":", "-", "--", "-."), strict=True):
    colour = "C3" if q == 2 else "0.35"
    axes[0].plot(p, score(p, q), style, color=colour, label=f"q = {q}")
    axes[0].plot(best[q], score(best[q], q), "o", color=colour, clip_on=False)
    axes[1].plot(p, gap[q], style, color=colour, label=f"q = {q}")
axes[0].axvline(0.2, color="C0", lw=1)
axes[0].text(0.21, 0.78, "the truth", color="C0")
axes[0].set(title="expected loss; the dot is the best forecast", ylabel="loss")
axes[1].set(title="loss minus L^q calibration error", ylabel="gap")
for ax in axes:
    ax.set(xlabel="forecast p", xlim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)
axes[1].legend(frameon=False, ncols=2)

# %%
# A liar, measured
# ----------------
# One forecaster says the truth, 0.2, another what L³ rewards, 1/3. The second has the
# lower L³ loss, yet is plainly not calibrated, as every calibration error tells.

rng = np.random.default_rng(4)
outcome = rng.random(20_000) < 0.2
honest, liar = np.full(20_000, 0.2), np.full(20_000, best[3])
cubic_loss = {
    name: np.mean(abs(outcome - said) ** 3)
    for name, said in (("honest", honest), ("liar", liar))
}
brier_loss = {
    name: cal.brier(outcome, confidence=said)
    for name, said in (("honest", honest), ("liar", liar))
}
print("L3 loss:   ", {name: round(float(v), 4) for name, v in cubic_loss.items()})
print("Brier loss:", {name: round(float(v), 4) for name, v in brier_loss.items()})
print("ECE of the liar:", round(cal.ece(outcome, confidence=liar), 3), "exact 0.133")

# %%
# Third powers that do belong to a score
# --------------------------------------
# φ(x) = Σ x³ gives a proper score with a calibration error of its own. It is not L³: a
# difference counts for more at high confidence. With forecasts p uniform on [0, 1] and
# accuracy p²,
#
# .. code-block:: text
#
#    L³ error    1/140   E |p² - p|³ = B(4, 4)
#    d_CAL       3/70    E [p⁶ - p³ - 3 p² (p² - p)]
#    loss        7/30    E [p² (1 - 3 p² + 2 p³) + (1 - p²) 2 p³]

cubic = cal.Divergence(
    "cubic",
    phi=lambda x: (x**3).sum(axis=1),
    gradient=lambda x: 3 * x**2,
    phi_1d=lambda p: p**3,
    derivative_1d=lambda p: 3 * p**2,
)
forecast = rng.random(20_000)
hit = rng.random(20_000) < forecast**2
ev = cal.evaluate_pairs(hit, forecast, divergence=cubic, level=0.99)
l3 = cal.ece(hit, confidence=forecast, norm=3, strategy="mass", bins=20) ** 3

# %%
# The numbers
# -----------

numbers = {
    "d_CAL, cubic score": (ev.decomposition.calibration, 3 / 70),
    "d_CAL, Brier": (ev.decompositions["brier"].calibration, 1 / 30),
    "loss, cubic score": (ev.decomposition.total, 7 / 30),
}
for name, (estimate, exact) in numbers.items():
    low, high = estimate.interval
    print(f"{name:20} {estimate:8.4f} [{low:.4f}, {high:.4f}]  exact {exact:.4f}")
    assert low <= exact <= high

print(f"L3 error over 20 bins {l3:.5f}                    exact {beta(4, 4):.5f}")
assert abs(l3 - beta(4, 4)) < 0.1 * beta(4, 4)
assert cubic_loss["liar"] < cubic_loss["honest"]
assert brier_loss["liar"] > brier_loss["honest"]
