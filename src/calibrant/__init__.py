"""calibrant: how well calibrated a classifier's probabilities are, and how sharp.

Start with `evaluate` (or `evaluate_pairs`) and print what it returns.
"""

import lazy_loader

from calibrant._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
