"""
One model in five diagrams
==========================

The same forecasts of a binary event, drawn in five ways: with bins, with the kernel of
SmoothECE, by isotonic regression, as a residual, and with the sharpness gap.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant import plot

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X[:, :2], y, test_size=0.8, random_state=0
)
model = GaussianNB().fit(X_train, y_train)
ev = cal.evaluate(y_test, probs=model.predict_proba(X_test)[:, 1], name="Naive Bayes")

fig, axes = plt.subplots(2, 2, figsize=(9, 9), layout="constrained")
ways = (plot.reliability, plot.smooth_reliability, plot.corp, plot.residual)
for draw, ax in zip(ways, axes.flat, strict=True):
    draw(ev, ax=ax)

# %%
# Few examples have a forecast near one half, so every curve is uncertain there, and each
# diagram has its own way to show it. The calibration-sharpness diagram adds what the
# forecasts leave open:

plot.calibration_sharpness(ev)

# %%
# In words, for those who cannot see it:

print(ev.describe())
