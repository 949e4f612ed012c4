"""
Five recalibrations of one model
================================

Naive Bayes counts every pixel of a digit as news, and is over-confident. The study fits each
method on 40 % of the held-out examples and tests it on the rest. Mean replacement lies on the
diagonal, as calibrated as can be, and has the largest band: it gives every example the same confidence.
"""

from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant import plot

X, y = load_digits(return_X_y=True)
model = GaussianNB(var_smoothing=0.01).fit(X[:300], y[:300])
study = cal.study(y[300:], probs=model.predict_proba(X[300:]), split=0.4, rng=0)
plot.calibration_sharpness(study)

# %%
# Each score, split into calibration error and sharpness gap.

plot.compare_methods(study)

# %%
# The table of the study says the same in numbers.

print(study)
