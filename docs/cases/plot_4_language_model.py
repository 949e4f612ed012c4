"""
A language model: stated confidence or token probability?
=========================================================

Llama 3.1 8B answered 4,590 questions (yes-or-no, law school, school and science questions;
NoamMichael/Comparing-Confidence-in-LLMs, MIT). There are two ways to get its confidence: ask
for a number, or read the probability of the token it answered with.

.. code-block:: python

   stated = cal.evaluate_pairs(correct, stated, group=question_set)
   token = cal.evaluate_pairs(correct, token_probability)
   found = cal.compare(stated, token)
"""

import lzma
from pathlib import Path

import calibrant as cal
from calibrant import plot

record = lzma.decompress(Path("language_model.json.xz").read_bytes())
found = cal.Contrast.from_json(record)
stated, token = found
plot.calibration_sharpness(found)

# %%
# Both are over-confident. Token probabilities are worse: most are close to 1, whether the answer is
# correct or not. Differences are paired, answer by answer:

for sentence in found.sentences:
    print(sentence)

# %%
# Calibration error and sharpness gap differ in opposite directions. The calibration error of token probabilities is higher, but
# their sharpness gap is *lower*: they tell correct from wrong answers better than the stated
# numbers do. So after recalibration, which takes graded answers, the token
# probability is the better confidence by Brier score. ECE alone points the other way.

for ev in found:
    parts = ev.decomposition
    print(
        f"{ev.name}: Brier {parts.total:.3f} = {parts.calibration:.3f}"
        f" + {parts.sharpness_gap:.3f}"
    )

# %%
# A model that is off by 16 points on average is not off by 16 points everywhere:

for name, part in stated.per_group.items():
    gap = part.metrics["confidence_gap"]
    low, high = gap.interval
    print(
        f"{name:13} {part.rows:5} answers, accuracy {part.metrics['accuracy']:.2f},"
        f" over-confident by {gap:+.2f} [{low:+.2f}, {high:+.2f}]"
    )

# %%
# **What follows.** On science questions the stated confidence can be used as it is, nearly; on
# law school puzzles it is worthless, and an average over both hides it. Evaluate by kind of
# question (``group=``), and recalibrate for the kind you deploy on.

plot.reliability(stated)
