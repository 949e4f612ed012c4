"""
Every class on its own
======================

A model can be right on average and wrong for some classes. With ``target="class-wise"``
each column is a forecast of its own.
"""

from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import calibrant as cal
from calibrant import plot

X, y = load_digits(return_X_y=True)
model = KNeighborsClassifier(20).fit(X[:300], y[:300])
ev = cal.evaluate(
    y[300:],
    probs=model.predict_proba(X[300:]),
    target="class-wise",
    name="20 neighbours",
)
plot.classwise_grid(ev, classes=[0, 1, 3, 8])

# %%
# The calibration error of each digit, worst first.

for part in sorted(ev.per_class, key=lambda part: -part.decomposition.calibration)[:4]:
    print(f"{part.name}: {part.decomposition.calibration:.4f}")
