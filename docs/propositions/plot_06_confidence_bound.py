"""
The error you can measure is a lower bound
==========================================

Full calibration is about whole vectors: among rows with forecast g, do the classes come
true with probabilities g? With many classes no two rows share a forecast, so it can
hardly be measured. Confidence calibration asks less: among rows with confidence h, how
often is the predicted class right?

The paper's main Lemma: for the right pairs of divergences the confidence calibration
error is **at most** the full one, at every confidence. Right pairs are those where d_φ of
two vectors is never below the 1-D divergence of one of their coordinates: Brier with the
squared difference, and (a Corollary) log with the logistic loss.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import rel_entr

import calibrant as cal

# %%
# A population of four forecasts
# ------------------------------
# Three classes and four forecasts, equally common. Two have confidence 0.6; one of them
# claims too little for its predicted class, the other too much. Two have confidence 0.8,
# and both claim too much.

forecast = np.array(
    [[0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8], [0.05, 0.8, 0.15]]
)
truth = np.array(
    [[0.75, 0.15, 0.1], [0.4, 0.45, 0.15], [0.2, 0.2, 0.6], [0.05, 0.7, 0.25]]
)
mass = np.full(4, 1 / 4)

# %%
# The bound has two steps, and each throws something away:
#
# 1. look only at the predicted class, and forget how the others share the rest;
# 2. mix all rows of the same confidence, so that opposite errors cancel.

FULL = {
    "brier": lambda x, y: ((x - y) ** 2).sum(axis=1),
    "log": lambda x, y: rel_entr(x, y).sum(axis=1),
}
ONE_D = {
    "brier": lambda a, h: (a - h) ** 2,
    "log": lambda a, h: rel_entr(a, h) + rel_entr(1 - a, 1 - h),
}


def three_errors(mass, forecast, truth, name):
    """Error of the vector, of the predicted class given g, and given only h."""
    rows, top = np.arange(len(mass)), forecast.argmax(axis=1)
    h, hit = forecast[rows, top], truth[rows, top]
    same = (h[:, None] == h) * mass
    accuracy = same @ hit / same.sum(axis=1)
    return [
        mass @ FULL[name](truth, forecast),
        mass @ ONE_D[name](hit, h),
        mass @ ONE_D[name](accuracy, h),
    ]


exact = {name: three_errors(mass, forecast, truth, name) for name in FULL}
assert np.allclose(exact["brier"], [0.04, 0.02375, 0.01125])

# %%
# Left: an arrow leads from each forecast to the truth. Both arrows that start at
# confidence 0.6 are long, one towards its corner and one away: their confidence
# calibration error is 0. Right: a thousand random populations, none above the diagonal.

corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
rng = np.random.default_rng(6)


def random_population(rng, k):
    """Twelve forecasts at four confidences, and truths near them."""
    h = np.tile([0.55, 0.65, 0.8, 0.9], 3)
    rest = rng.dirichlet(np.ones(k - 1), 12) * (1 - h[:, None])
    forecast = np.column_stack([h, rest])
    share = rng.random((12, 1)) ** 2
    truth = (1 - share) * forecast + share * rng.dirichlet(np.ones(k), 12)
    return rng.dirichlet(np.ones(12)), forecast, truth


fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
left.fill(*corners.T, facecolor="0.96", edgecolor="0.4")
for start, end, h in zip(
    forecast @ corners, truth @ corners, forecast.max(axis=1), strict=True
):
    colour = "C3" if h == 0.6 else "C0"
    left.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour})
    left.plot(*start, "o", color=colour)
for corner, name, where in zip(
    corners, "ABC", ("right", "left", "center"), strict=True
):
    left.text(*corner, f" {name} ", ha=where, va="bottom" if name == "C" else "center")
left.text(0.02, 0.8, "confidence 0.6", color="C3")
left.text(0.02, 0.73, "confidence 0.8", color="C0")
left.set(aspect="equal", title="forecast → truth", xlim=(-0.1, 1.1))
left.axis("off")

for name, marker, colour in (("brier", "o", "C0"), ("log", "^", "C1")):
    errors = np.array(
        [three_errors(*random_population(rng, 4), name) for _ in range(500)]
    )
    right.loglog(errors[:, 0], errors[:, 2], marker, ms=2.5, color=colour, label=name)
    right.plot(exact[name][0], exact[name][2], marker, ms=9, mfc="none", mec="black")
right.axline((1e-3, 1e-3), (1, 1), color="0.4", lw=1)
right.set(xlabel="full error", ylabel="confidence error", title="random populations")
right.set(xlim=(5e-4, 3), ylim=(5e-4, 3))
right.legend(frameon=False, markerscale=2, loc="lower right")
right.spines[["top", "right"]].set_visible(False)

# %%
# The numbers
# -----------
# calibrant's d_CAL is the confidence calibration error, the last of the three. For up to ten
# classes `canonical_calibration_error` estimates the first.

row = rng.integers(4, size=10_000)
y = (rng.random((len(row), 1)) > truth[row].cumsum(axis=1)[:, :2]).sum(axis=1)
ev = cal.evaluate(y, probs=forecast[row], level=0.99)
numbers = {}
for name, errors in exact.items():
    options = {"probs": forecast[row], "divergence": name, "level": 0.99}
    whole = cal.canonical_calibration_error(y, **options)
    numbers[f"full, {name}"] = whole.calibration, errors[0]
    numbers[f"d_CAL, {name}"] = ev.decompositions[name].calibration, errors[2]
for name, (estimate, value) in numbers.items():
    low, high = estimate.interval
    print(f"{name:14} {estimate:.4f} [{low:.4f}, {high:.4f}]  exact {value:.4f}")
    assert low <= value <= high
for name, (full, predicted, confidence) in exact.items():
    print(f"{name:6} full {full:.4f} > class {predicted:.4f} > d_CAL {confidence:.4f}")
    assert full > predicted > confidence
