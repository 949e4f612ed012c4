"""Recalibration: learn on held-out rows how to turn scores into better probabilities.

Every method has the contract of a scikit-learn classifier: ``fit(scores, y)``, then
``predict_proba(scores)``. `save` writes JSON, and `load` reads it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
