"""
Always wrong, and hardly any loss
=================================

With many classes it is tempting to forget all but the predicted one, and to score the
pairs (confidence, right or wrong). The paper's Proposition warns: that 1-D loss can be
next to nothing for a model that is **never right**.

The trick: put 1/k + ε on a wrong class and the same smaller number on all the others,
with ε = 1/k. The model is nearly sure that its own prediction is wrong, and it is right
about that. The full loss, which looks at the class that came true, is not fooled.

So reduce to one dimension only to measure calibration, never to measure loss.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cal

# %%
# The population
# --------------
# Every class is equally common and a row's class is certain. With ε = 1/k the prediction
# gets 2/k and every other class r = 1/k - 1 / (k (k - 1)):
#
# .. code-block:: text
#
#             1-D loss        full loss
#    Brier    (2/k)²          (1 - r)² + (2/k)² + (k - 2) r² → 1
#    log      -log(1 - 2/k)   -log r → ∞
#
# The paper says O(1/k) for the 1-D Brier loss; with this ε it is even O(1/k²).


def exact(k):
    """Accuracy, calibration error and losses for k classes."""
    r = 1 / k - 1 / (k * (k - 1))
    return {
        "accuracy": 0 * k,
        "ECE": 2 / k,
        "Brier, 1-D": (2 / k) ** 2,
        "Brier, full": (1 - r) ** 2 + (2 / k) ** 2 + (k - 2) * r**2,
        "log, 1-D": -np.log1p(-2 / k),
        "log, full": -np.log(r),
    }


# %%
# What calibrant finds
# --------------------
# `cal.evaluate_pairs` scores pairs, `cal.evaluate` the whole vector. Draw 2,000 labels for
# each k, and a wrong class for each label.


def always_wrong(y, k, rng):
    """2/k on a class that is not y, the rest shared evenly."""
    probs = np.full((len(y), k), 1 / k - 1 / (k * (k - 1)))
    probs[np.arange(len(y)), (y + rng.integers(1, k, len(y))) % k] = 2 / k
    return probs


rng = np.random.default_rng(5)
sizes = [3, 10, 30, 100, 300, 1000]
found = []
for k in sizes:
    y = rng.integers(k, size=2000)
    probs = always_wrong(y, k, rng)
    correct = probs.argmax(axis=1) == y
    full = cal.evaluate(y, probs=probs, interval=None)
    pairs = cal.evaluate_pairs(correct, probs.max(axis=1), interval=None)
    found.append(
        {
            "accuracy": full.metrics["accuracy"],
            "ECE": full.metrics["ece"],
            "Brier, 1-D": pairs.metrics["brier"],
            "Brier, full": full.metrics["brier"],
            "log, 1-D": pairs.metrics["nll"],
            "log, full": full.metrics["nll"],
        }
    )

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharex=True, layout="constrained")
curve = np.geomspace(3, 1000, 200)
for ax, name in zip(axes, ("Brier", "log"), strict=True):
    for kind, colour in (("full", "C0"), ("1-D", "C3")):
        key = f"{name}, {kind}"
        ax.loglog(curve, exact(curve)[key], color=colour, label=f"{kind} loss, exact")
        ax.plot(sizes, [row[key] for row in found], "o", color=colour, label="measured")
    ax.set(title=f"{name} loss of a model that is never right", xlabel="classes k")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False)

# %%
# The calibration error shrinks with the 1-D loss: at 1000 classes ECE is 0.002, which is
# right, since the model claims 0.2 % and has 0 %. Calibration is not the trouble here;
# taking the 1-D loss for the loss is.

# %%
# The numbers
# -----------
# Nothing is random in these losses, so they agree to the last digits.

numbers = {
    f"{name}, k = {k}": (row[name], value)
    for k, row in zip(sizes, found, strict=True)
    for name, value in exact(k).items()
}
for name, (measured, value) in numbers.items():
    print(f"{name:22} {measured:10.3g}  exact {value:.3g}")
    assert np.isclose(measured, value)
