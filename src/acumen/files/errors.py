"""One kind of error for all files: the file, the rule, the offender, the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_MESSAGE, LONGEST_NAME = 500, 60


class FileError(ValueError):
    """A file that cannot be read as predictions; the message is one line."""

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(one_line(f"{shorten(str(path), 300)}: {problem}"))


def one_line(text: str) -> str:
    r"""Text from a file or a library, on one line, printable and not endless.

    Examples
    --------
    >>> one_line("CSV Error\n  on line 2\x1b[31m")
    'CSV Error on line 2 [31m'
    """
    start = text[: 4 * LONGEST_MESSAGE]
    words = "".join(c if c.isprintable() else " " for c in start).split()
    return shorten(" ".join(words), LONGEST_MESSAGE)


def shorten(text: str, length: int = LONGEST_NAME) -> str:
    """The text, or its beginning with dots.

    Examples
    --------
    >>> shorten("x" * 1_000_000, 5)
    'xxxx…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def quoted(names: list[str] | tuple[str, ...], most: int = 12) -> str:
    """Names as a list to print, at most a dozen of them.

    Examples
    --------
    >>> quoted(["y", "p"])
    "'y', 'p'"
    """
    shown = [repr(shorten(name)) for name in names[:most]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a parser raises on hostile bytes into one clear error."""
    try:
        yield
    except FileError:
        raise
    except MemoryError as error:
        raise FileError(
            path, "asks for more memory than there is; it is damaged, or too large."
        ) from error
    except OSError as error:
        reason = one_line(error.strerror or str(error)).rstrip(".")
        raise FileError(path, f"cannot be read: {reason}.") from error
    except Exception as error:
        reason = str(error).split("\nPossible ")[0].split("\n\n")[0]
        said = f"{type(error).__name__}: {one_line(reason)}".rstrip(".: ")
        raise FileError(path, f"cannot be read ({said}).") from error
