"""torchvision beside a PyTorch it was not built for, where timm or torchmetrics need it.

The torchvision that pip installs by default is built for CUDA. Beside a PyTorch for the
CPU its compiled operators do not load, its import stops at the first one, and with it that
of whatever imports it. Once they are declared, the part written in Python imports.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any

import torch

OPERATORS = ("nms", "qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def mend_torchvision() -> None:
    """Make torchvision importable, if it is installed and only its operators fail."""
    try:
        importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        _declare_operators()


@cache  # it keeps the library alive, and with it the declarations
def _declare_operators() -> Any:
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]  # halves of the import that failed
    make: Any = torch.library.Library  # not typed
    library = make("torchvision", "DEF")
    for operator in OPERATORS:
        library.define(operator + SCHEMA)
    return library
