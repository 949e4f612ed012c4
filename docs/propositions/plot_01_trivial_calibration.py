"""
Calibration alone is cheap
==========================

A forecast is calibrated if each class comes true as often as its probability says. Two
forecasts that know next to nothing are calibrated (section 3 of the paper):

- **Base rates**: for every example, how common each class is.
- **Mean replacement** (MRR): keep the predicted class of any model, and give every example
  the same confidence, the model's accuracy :math:`q`. Each other class gets
  :math:`(1 - q) / (k - 1)`.

Mean replacement even keeps the accuracy. So a table that has accuracy and calibration
error, and nothing else, puts it first. A proper score sees through it.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal
from calibrant.recalibration import MeanReplacement

# %%
# The population
# --------------
# Three classes. The model's probabilities g are spread evenly over all probability
# vectors; it is over-confident, for the truth is 0.8 g + 0.2 / 3. Then E|g|² = 1/2, the
# confidence h has mean 11/18, and (3h - 1)² has mean 7/8. The rest follows by hand:
#
# .. code-block:: text
#
#    the model
#    accuracy      5/9      E[0.8 h + 0.2/3]
#    ECE           1/18     E |0.2 h - 0.2/3|
#    d_CAL         7/1800   E (0.2 h - 0.2/3)²
#    Brier score   17/30    1 - 2 E[g · truth] + E|g|²
#
#    mean replacement, with A = 5/9 and r = (1 - q) / 2
#    ECE           |A - q|
#    Brier score   A [(1 - q)² + 2 r²]
#                  + (1 - A) [q² + (1 - r)² + r²]
#
#    base rates
#    Brier score   2/3      1 - Σ (1/3)²
#
# If mean replacement knew the accuracy, q = 5/9, its Brier score would be 16/27.

rng = np.random.default_rng(1)
g = rng.dirichlet(np.ones(3), 25_000)
truth = 0.8 * g + 0.2 / 3
y = (rng.random((len(g), 1)) > truth.cumsum(axis=1)[:, :2]).sum(axis=1)

# %%
# What calibrant finds
# --------------------
# The first 5,000 rows are the calibration set; mean replacement learns q from them. The
# others are the test set. *True probabilities* is the best that recalibration could do.

replacement = MeanReplacement(scores="probs").fit(g[:5000], y[:5000])
g, truth, y = g[5000:], truth[5000:], y[5000:]
forecasts = {
    "Model": g,
    "True probabilities": truth,
    "Mean replacement": replacement.predict_proba(g),
    "Base rates": np.full_like(g, 1 / 3),
}
found = {
    name: cal.evaluate(y, probs=probs, name=name, level=0.99)
    for name, probs in forecasts.items()
}

fig, axes = plt.subplots(1, 3, figsize=(8, 2.6), sharey=True, layout="constrained")
for ax, (key, title) in zip(
    axes,
    {"accuracy": "accuracy", "ece": "ECE", "brier": "Brier score"}.items(),
    strict=True,
):
    values = [ev.metrics[key] for ev in found.values()]
    ax.barh(list(found), values, color=["C0", "C0", "C3", "C3"], height=0.6)
    ax.bar_label(ax.containers[0], fmt="%.3f", padding=3, fontsize=9)
    ax.set(title=title, xlim=(0, 1.3 * max(values)))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()

# %%
# Red are the two trivial forecasts. By the first two columns mean replacement is as
# accurate as the model and far better calibrated. By the third it is worse than the
# model it replaced. The diagrams show why. All rows of mean replacement sit at one
# confidence, and the band there, the sharpness gap, holds the whole loss.

fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, name in zip(axes, ("Model", "Mean replacement"), strict=True):
    found[name].plot(ax=ax)

# %%
# The numbers
# -----------
# Estimates with their 99 % intervals, and the exact values.

model, mean = found["Model"], found["Mean replacement"]


def replaced_brier(q, accuracy=5 / 9):
    """Brier score of mean replacement with confidence q."""
    r = (1 - q) / 2
    right, wrong = (1 - q) ** 2 + 2 * r**2, q**2 + (1 - r) ** 2 + r**2
    return accuracy * right + (1 - accuracy) * wrong


off = abs(replacement.accuracy_ - 5 / 9)  # what is left of the calibration error
numbers = {
    "accuracy, model": (model.metrics["accuracy"], 5 / 9),
    "accuracy, mean replacement": (mean.metrics["accuracy"], 5 / 9),
    "ECE, model": (model.metrics["ece"], 1 / 18),
    "ECE, mean replacement": (mean.metrics["ece"], off),
    "d_CAL, model": (model.decomposition.calibration, 7 / 1800),
    "d_CAL, mean replacement": (mean.decomposition.calibration, off**2),
    "Brier, model": (model.metrics["brier"], 17 / 30),
    "Brier, mean replacement": (
        mean.metrics["brier"],
        replaced_brier(replacement.accuracy_),
    ),
}
for name, (estimate, exact) in numbers.items():
    low, high = estimate.interval
    print(f"{name:28} {estimate:8.4f} [{low:.4f}, {high:.4f}]  exact {exact:.4f}")
    assert low <= exact <= high

assert mean.metrics["auroc"] == 0.5  # it cannot tell right rows from wrong ones
