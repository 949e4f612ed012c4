"""Figures of evaluations, for matplotlib; each function draws and returns Axes.

Figures are drawn from the record alone, so their cost does not depend on the number of
examples. They follow the style sheet and the rcParams in force, and change none. Without
``ax=`` a figure of its own is made, of ``figsize=`` inches; save it with
``ax.figure.savefig``. It is shown in notebooks, and by pyplot where that opens windows.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
