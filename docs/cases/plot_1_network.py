"""
A network: ResNet-32 on CIFAR-10
================================

A ResNet-32 trained on CIFAR-10 (weights by akamaster/pytorch_resnet_cifar10) classifies
the 10,000 test images. A fifth of them, drawn at random, fits a temperature; the other
8,000 are the test. The study was made by

.. code-block:: python

   found = cal.study(labels, logits=logits, methods="temperature")

and saved with ``found.to_json()``. Here it is again:
"""

import lzma
from pathlib import Path

import calibrant as cal
from calibrant import plot

record = lzma.decompress(Path("network.json.xz").read_bytes())
found = cal.Study.from_json(record)
found.plot()

# %%
# Left, the network as it is. The curve lies below the diagonal: of the images it was 80 %
# sure of, about half were classified correctly. In the middle, after temperature scaling, curve
# and diagonal agree. On the right, mean replacement: every image gets the same confidence,
# the accuracy on the calibration images. Its curve is a point on the diagonal, and the band,
# the sharpness gap, is the largest of the three.

print(found.table())

# %%
# **What follows.** Look at the proper scores first. Temperature scaling lowers the Brier score
# from 12.3 to 11.0 and the log loss from 37 to 23 (times 100) without changing a single
# prediction: use it. Mean replacement has the lowest ECE and the worst Brier score. A table of
# accuracy and ECE alone would have preferred it.
#
# How much of the loss is left to recalibration?

before, after = found[0].decomposition, found[1].decomposition
for name, parts in (("before", before), ("after", after)):
    low, high = parts.calibration.interval
    print(f"{name:6} calibration error {parts.calibration:.4f} [{low:.4f}, {high:.4f}]")

# %%
# After scaling, the interval reaches down to 0: there is no evidence of miscalibration left,
# and further recalibration could gain at most the upper end. The rest of the loss is
# sharpness, which takes a better network.
#
# The reliability diagram shows the same with bins, and with what it hides: how few of the
# images lie in the bins that look worst.

plot.reliability(found[0])
