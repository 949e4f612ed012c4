"""Predictions in files: read safely, whole or in batches, and looked into.

`read` and `batches` give what `acumen.evaluate` takes; `inspect` says what is there.
"""

from acumen.files.contents import Contents, Item, inspect
from acumen.files.errors import FileError
from acumen.files.found import Found
from acumen.files.reading import batches, read
from acumen.files.roles import Roles

__all__ = [
    "Contents",
    "FileError",
    "Found",
    "Item",
    "Roles",
    "batches",
    "inspect",
    "read",
]
