"""Optional packages, loaded when they are used, and one clear line where one is missing."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


def needed(name: str) -> Any:
    """An optional package, or an error that says how to install it.

    Examples
    --------
    >>> needed("no_such_package")
    Traceback (most recent call last):
    ImportError: acumen.vision needs no_such_package (No module named 'no_such_package'); ...
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"acumen.vision needs {name.split('.')[0]} ({error}); install it with "
            "pip install 'acumen[vision]'."
        ) from error


@cache
def timm() -> Any:
    """timm, also where torchvision was built for another PyTorch than the one here.

    timm uses none of its compiled operators: see `acumen.torch.operators`.
    """
    needed("torch")
    needed("acumen.torch.operators").mend_torchvision()
    return needed("timm")


@contextmanager
def downloading(what: str, way_out: str) -> Iterator[None]:
    """One error for all the ways a download can fail; retries are not talked about."""
    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    hub.setLevel(logging.ERROR)
    try:
        yield
    except (ValueError, ImportError):  # a wrong name, not a failure on the way
        raise
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise OSError(f"{what} cannot be downloaded ({reason}); {way_out}") from error
    finally:
        hub.setLevel(level)
