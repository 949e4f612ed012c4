"""Small inputs on which calibration libraries disagree, each pinning one convention.

With `bins`, the binned errors are asked; without, the smooth ones. `repeat` tiles the
pairs. The words of `about` say what is at stake, not who is right.
"""

import numpy as np

PAIRS = {
    "middle_edge": {
        "about": "0.5 with two bins: [.5, 1] (left-closed) or (0, .5] (right-closed)",
        "confidence": [0.5, 0.5, 0.9, 0.2],
        "correct": [1, 1, 1, 0],
        "bins": 2,
    },
    "tenths": {
        "about": "decimals near the edges i/10, which binary fractions only approximate",
        "confidence": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "correct": [0, 1, 0, 0, 1, 1, 0, 1, 1],
        "bins": 10,
    },
    "one_when_right": {
        "about": "confidence exactly 1 shares the last bin with .95, or has its own",
        "confidence": [1.0, 1.0, 0.95, 0.95],
        "correct": [1, 1, 0, 0],
        "bins": 10,
    },
    "one_when_wrong": {
        "about": "as before, correctness flipped: the two readings now differ",
        "confidence": [1.0, 1.0, 0.95, 0.95],
        "correct": [0, 0, 1, 1],
        "bins": 10,
    },
    "zero": {
        "about": "confidence exactly 0 belongs to the first bin",
        "confidence": [0.0, 0.0, 0.05, 0.3, 0.8],
        "correct": [0, 1, 0, 1, 1],
        "bins": 10,
    },
    "half_weight_at_one": {
        "about": "half at 1 and right, half at .5 and wrong: smooth ECE is .25 exactly",
        "confidence": [1.0, 0.5],
        "correct": [1, 0],
        "repeat": 100,
    },
    "half_weight_at_zero": {
        "about": "the mirror image: half at 0 and right to be, half at .5 and wrong",
        "confidence": [0.0, 0.5],
        "correct": [0, 1],
        "repeat": 100,
    },
    "full_weight_near_one": {
        "about": "at .998, two grid steps from the end, every pair counts in full",
        "confidence": [0.998, 0.5],
        "correct": [1, 0],
        "repeat": 100,
    },
    "constant": {
        "about": "always .7 sure, right 4 times in 10: d_CAL = .09, total = .33",
        "confidence": [0.7] * 10,
        "correct": [1] * 4 + [0] * 6,
        "repeat": 10,
    },
    "six_pairs": {
        "about": "few enough to work out the kernel regression by hand, both ends included",
        "confidence": [0.0, 0.12, 0.5, 0.53, 0.9, 1.0],
        "correct": [0, 1, 0, 1, 1, 1],
    },
}

MATRICES = {
    "three_to_one": {
        "about": "two of four bins hold 3 and 1 rows: ECE weighs them, ACE does not",
        "probs": [[0.9, 0.05, 0.05]] * 3 + [[0.3, 0.4, 0.3]],
        "labels": [0, 0, 1, 2],
        "bins": 4,
    },
    "zero_at_the_true_class": {
        "about": "an infinite log loss: reported as such, or clipped",
        "probs": [[1.0, 0.0, 0.0], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]],
        "labels": [1, 1, 2, 0],
        "bins": 4,
    },
    "few_values": {
        "about": "fewer distinct values than a quarter of the rows: each may be a bin",
        "probs": [[0.7, 0.2, 0.1]] * 10
        + [[0.1, 0.6, 0.3]] * 9
        + [[0.25, 0.25, 0.5]] * 5,
        "labels": [0] * 5
        + [1] * 4
        + [2]
        + [1] * 3
        + [0] * 4
        + [2] * 2
        + [2] * 2
        + [0] * 3,
        "bins": 4,
    },
}


def pairs_of(case: dict) -> tuple[np.ndarray, np.ndarray]:
    """Confidence (float64) and correctness (int64) of one of PAIRS."""
    repeat = case.get("repeat", 1)
    confidence = np.tile(np.array(case["confidence"], dtype=np.float64), repeat)
    return confidence, np.tile(np.array(case["correct"], dtype=np.int64), repeat)


def matrix_of(case: dict) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, k) and labels (n,) of one of MATRICES."""
    return np.array(case["probs"], dtype=np.float64), np.array(case["labels"])
