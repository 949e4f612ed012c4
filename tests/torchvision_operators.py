"""torchvision beside a PyTorch it was not built for, so that timm and torchmetrics import.

The torchvision that pip installs by default is built for CUDA. Beside a PyTorch for the
CPU its compiled operators do not load, its import stops at the first one, and with it that
of whatever imports it. Once they are declared, the part written in Python imports, which
is all that these tests need.
"""

import importlib
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

OPERATORS = ("nms", "qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

FIRST = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from torchvision_operators import mend_torchvision
mend_torchvision()
"""
"""What a process of its own runs before it imports timm or torchmetrics."""


def mend_torchvision():
    """Make torchvision importable, if it is installed and only its operators fail."""
    if not (find_spec("torch") and find_spec("torchvision")):
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        _declare_operators()


@cache  # it keeps the library alive, and with it the declarations
def _declare_operators():
    import torch

    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # halves of the import that failed
    library = torch.library.Library("torchvision", "DEF")
    for operator in OPERATORS:
        library.define(operator + SCHEMA)
    return library
