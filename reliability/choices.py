"""An input of the fuzzer is a string of bytes, and every byte is a choice.

What is built from it (a file, a command, a call, a record) asks for one choice after the
other. A string that ends early goes on with zeros, and zero is always the harmless choice:
so a shorter string, or one with more zeros in it, is a simpler input.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

LONGEST = 400
"""Bytes of an input: more choices than any builder asks for, as a rule."""


class Choices:
    """Choices read from a string of bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.used = 0

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        if n <= 1:
            return 0
        width = ((n - 1).bit_length() + 7) // 8
        part = self.data[self.used : self.used + width].ljust(width, b"\0")
        self.used += width
        return int.from_bytes(part, "big") % n

    def one(self, options: Sequence[T]) -> T:
        """One of some options; the first is the harmless one."""
        return options[self.below(len(options))]

    def chance(self, of_256: int) -> bool:
        """True so many times out of 256, and never where the choices have run out."""
        return self.below(256) >= 256 - of_256

    def between(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return least + self.below(most - least + 1)

    def generator(self) -> random.Random:
        """Numbers to fill arrays with, from two bytes."""
        return random.Random(self.below(1 << 16))


def drawn(rng: random.Random) -> bytes:
    """A new input."""
    return rng.randbytes(rng.choice((16, 48, 120, LONGEST)))


def mutated(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """An input near another one."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        place = rng.randrange(len(made) + 1)
        step = rng.randrange(6)
        if step == 0 and made:
            made[place - 1] = rng.randrange(256)
        elif step == 1 and made:
            made[place - 1] = (made[place - 1] + rng.choice((-1, 1))) % 256
        elif step == 2:
            made[place:place] = rng.randbytes(rng.choice((1, 1, 2, 4)))
        elif step == 3:
            del made[place : place + rng.choice((1, 1, 2, 4, 8))]
        elif step == 4 and others:
            other = rng.choice(others)
            made[place:] = other[rng.randrange(len(other) + 1) :]
        elif step == 5:
            made[place : place + 4] = bytes(rng.choice((1, 2, 4)))
    return bytes(made[:LONGEST])


def simpler(data: bytes) -> list[bytes]:
    """Inputs simpler than this one, the simplest first."""
    n = len(data)
    shorter = [data[:size] for size in (n // 4, n // 2, 3 * n // 4, n - 1) if size < n]
    zeroed = [
        data[:i] + bytes(len(data[i : i + size])) + data[i + size :]
        for size in (16, 4, 1)
        for i in range(0, n, size)
        if any(data[i : i + size])
    ]
    return shorter + zeroed
