"""
Styles of the diagram
=====================

The authors' own style with the published bandwidth, and the log-odds scale, which spreads
out the confidences of a saturated model.
"""

from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import calibrant as cal

X, y = load_digits(return_X_y=True)
net = MLPClassifier((64,), max_iter=1000, random_state=0).fit(X[:300] / 16, y[:300])
ev = cal.evaluate(y[300:], probs=net.predict_proba(X[300:] / 16), name="Network")
ev.plot(style="paper")

# %%
# On the log-odds scale, with the adaptive curve:

ev.plot(scale="logit")
