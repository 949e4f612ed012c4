"""
What is a 90 % from a language model worth?
===========================================

Eleven language models answered up to 6,700 questions each (yes-or-no, hallucinated answers,
law school, school and science questions; NoamMichael/Comparing-Confidence-in-LLMs, MIT) and
said how sure they were. Here are all answers that came with exactly 90 %, and how often
they were correct. Answers to one question are one cluster.

.. code-block:: python

   at_90 = cal.evaluate_pairs(correct, stated, cluster=question, group=model)
"""

import lzma
from pathlib import Path

import matplotlib.pyplot as plt

import calibrant as cal
from calibrant import plot


def recorded(name):
    """The JSON of an evaluation that docs/cases/record.py made."""
    return lzma.decompress(Path(f"{name}.json.xz").read_bytes())


at_90 = cal.Evaluation.from_json(recorded("ninety"))
worth = {name: part.metrics["accuracy"] for name, part in at_90.per_group.items()}
models = sorted(worth, key=worth.get)

figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.axvline(90, color="0.5", linestyle="--", linewidth=1)
axes.annotate(
    "as stated", (90, 10.6), ha="center", va="bottom", color="0.4", fontsize=8
)
for place, name in enumerate(models):
    low, high = worth[name].interval
    axes.plot([100 * low, 100 * high], [place, place], color="#33608c", linewidth=2)
    axes.plot(100 * worth[name], place, "o", color="#33608c", markersize=5)
    count = f"{at_90.per_group[name].n:,.0f}"
    axes.text(100.7, place, count, va="center", color="0.4", fontsize=8)
axes.text(100.7, 10.6, "answers", va="bottom", color="0.4", fontsize=8)
axes.set(
    xlim=(60, 100),
    ylim=(-0.6, 10.6),
    xlabel="correct among answers stated at 90 %, in %",
)
axes.set_yticks(range(len(models)), models)
axes.spines[["top", "right"]].set_visible(False)

# %%
# The same words mean different things: from two answers in three to more than nine in ten.

low, high = worth[models[0]], worth[models[-1]]
print(f"{models[0]}: {100 * low:.0f} %, {models[-1]}: {100 * high:.0f} %")
print(f"all models together: {100 * at_90.metrics['accuracy']:.1f} %")

# %%
# A model is not one number either
# --------------------------------
# GPT-4o says 90 % often. What that is worth depends on the questions: each panel is one set of
# them (``group=``), with its calibration error and its sharpness gap.

gpt = cal.Evaluation.from_json(recorded("ninety_by_questions"))
plot.calibration_sharpness(cal.by_group(gpt), figsize=(9.6, 2.9))

# %%
# The average over all answers hides this, and counts the largest set most. The macro average
# counts each set once:

for name, numbers in {"micro": gpt.metrics, "macro": cal.macro_average(gpt)}.items():
    shown = {key: numbers[key] for key in ("accuracy", "confidence_gap", "brier")}
    print(name, ", ".join(f"{key} {value:.3f}" for key, value in shown.items()))

# %%
# After recalibration, 90 % is 90 %
# ---------------------------------
# Graded answers teach how often a stated number is right. Each answer below is recalibrated by
# what was learned on *other* questions:
#
# .. code-block:: python
#
#    study = cal.study(correct, confidence=stated, cluster=question, folds=5)

study = cal.Study.from_json(recorded("ninety_study"))
plot.calibration_sharpness([study[0], study["Isotonic"]])

# %%
# The calibration error all but vanishes. What is left, the sharpness gap, stays as it was: a
# monotone map cannot tell apart answers that were given the same number.

for ev in study[:3]:
    parts = ev.decomposition
    print(
        f"{ev.name}: Brier {parts.total:.3f} = {parts.calibration:.3f}"
        f" + {parts.sharpness_gap:.3f}"
    )

# %%
# **What follows.** Never read a stated confidence as a probability before it was checked on
# graded answers of the same kind. A map learned on a few hundred of them makes the number
# honest; it takes other signals (`token probabilities
# <plot_4_language_model.html>`__, agreement of samples) to make it sharper.
