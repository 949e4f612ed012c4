"""In a training loop: predictions are reduced and added up on the device they are on.

Needs the extra ``torch``. `reduce_rows` asks for PyTorch alone, `CalibrationSharpness`
for torchmetrics too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant._base.checks import missing

try:
    from calibrant.torch._tensor_cells import TensorColumns, reduce_rows
except ModuleNotFoundError as error:
    raise missing(error, "calibrant.torch") from None

if TYPE_CHECKING:
    from calibrant.torch._metric import CalibrationSharpness as CalibrationSharpness

__all__ = ["CalibrationSharpness", "TensorColumns", "reduce_rows"]


def __getattr__(name: str) -> Any:
    """Load torchmetrics when its metric is first used."""
    if name != "CalibrationSharpness":
        raise AttributeError(f"module 'calibrant.torch' has no attribute {name!r}")
    try:
        from calibrant.torch._metric import CalibrationSharpness
    except ModuleNotFoundError as error:
        raise missing(error, f"calibrant.torch.{name}") from None
    except RuntimeError as error:
        told = " ".join(str(error).split())[:120]
        raise ImportError(
            f"calibrant.torch.{name} needs torchmetrics, which cannot be imported here "
            f"({told}). A torchvision that was built for another PyTorch has this effect: "
            "install the two that belong together, or remove torchvision."
        ) from error
    return CalibrationSharpness
