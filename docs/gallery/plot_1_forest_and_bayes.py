"""
Calibration and sharpness of three models
=========================================

Digits, three classifiers. The forest is right far more often than it says (its curve lies
above the diagonal), naive Bayes less often, logistic regression about as often. ECE
prefers naive Bayes to the forest. But the loss that no recalibration of the confidence can
remove, the sharpness gap, is smaller for the forest.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant import plot

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.8, random_state=0)
models = {
    "Random forest": RandomForestClassifier(random_state=0),
    "Naive Bayes": GaussianNB(var_smoothing=0.01),
    "Logistic": LogisticRegression(max_iter=2000),
}
found = [
    cal.evaluate(
        y_test, probs=model.fit(X_train, y_train).predict_proba(X_test), name=name
    )
    for name, model in models.items()
]
plot.calibration_sharpness(found)

# %%
# The same as a map: sharpness gap to the right, calibration error upwards, lines of equal
# Brier score. Recalibration moves a model straight down, or further.

plot.score_map(found)
