"""Recalibration: learn on held-out rows how to turn scores into better probabilities.

Every method has the contract of a scikit-learn classifier: ``fit(scores, y)``, then
``predict_proba(scores)``. `save` writes JSON, and `load` reads it.
"""

from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load what is first used; if a package is missing, say what to install."""
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        from calibrant._base.checks import missing

        raise missing(error, f"{__name__}.{name}") from None
