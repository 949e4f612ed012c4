"""Figures of evaluations, for matplotlib; each function draws and returns Axes.

Figures are drawn from the record alone, so their cost does not depend on the number of
rows. Without ``ax=`` a figure of its own is made, which pyplot does not know of: save it
with ``ax.figure.savefig``. No rcParam is changed, and nothing is shown.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
