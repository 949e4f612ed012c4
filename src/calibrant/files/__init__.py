"""Predictions in files: read safely, whole or in batches, and looked into.

`read` and `batches` give what `calibrant.evaluate` takes; `inspect` says what is there.
"""

from calibrant.files._inspect import Contents, Item, inspect
from calibrant.files._plan import Roles
from calibrant.files._read import Found, batches, read
from calibrant.files._sources import FileError

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
