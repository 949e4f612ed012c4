"""What a benchmark is: a function that returns a ratio it has checked, and a target."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from timing import Timing


class WrongAnswerError(Exception):
    """A benchmark that computes the wrong thing is worse than none."""


@dataclass(frozen=True)
class Ratio:
    """One measured ratio: of CPU times (or memory), and of wall times where it applies.

    The targets judge CPU time: on a busy machine the wall clock also measures the
    others. `checks` says what was compared. `seconds` is what it rests on, by contestant
    and clock: there is no ratio without.
    """

    value: float
    by_wall: float | None
    checks: tuple[str, ...]
    seconds: dict[str, dict[str, float]]

    def __post_init__(self) -> None:
        clocks = [x for one in self.seconds.values() for x in one.values()]
        if not clocks or not all(0 < x < inf for x in clocks):
            raise ValueError(
                f"a ratio needs the seconds it rests on, got {self.seconds}"
            )

    @classmethod
    def of(cls, above: str, below: str, timings: dict[str, Timing], *checks: str):
        """How many times longer `above` took than `below`."""
        top, bottom = timings[above], timings[below]
        return cls(
            top.cpu / bottom.cpu, top.wall / bottom.wall, checks, seconds_in(timings)
        )

    @classmethod
    def amount(cls, value: float, timings: dict[str, Timing], *checks: str):
        """What is no ratio of times, as memory, with the seconds it was measured in."""
        return cls(value, None, checks, seconds_in(timings))


def seconds_in(timings: dict[str, Timing]) -> dict[str, dict[str, float]]:
    return {name: {"wall": t.wall, "cpu": t.cpu} for name, t in timings.items()}


@dataclass(frozen=True)
class Benchmark:
    """A row of the table."""

    title: str
    run: Callable[[], Ratio]
    at_least: float | None
    at_most: float | None
    needs: tuple[str, ...]
    unit: str

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}{self.unit}"
        if self.at_most is not None:
            return f"<= {self.at_most:g}{self.unit}"
        return "none"

    def met(self, value: float) -> bool | None:
        """Whether the target is met; None without a target."""
        if self.at_least is not None:
            return value >= self.at_least
        return None if self.at_most is None else value <= self.at_most


BENCHMARKS: list[Benchmark] = []


def benchmark(
    title: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    needs: tuple[str, ...] = (),
    unit: str = "x",
):
    """Register a function as a row; `needs` are the import names it cannot do without."""

    def register(run: Callable[[], Ratio]) -> Callable[[], Ratio]:
        BENCHMARKS.append(Benchmark(title, run, at_least, at_most, needs, unit))
        return run

    return register


def agree(what: str, ours: float, theirs: float, within: float) -> str:
    """Describe the agreement of two numbers, or refuse to go on."""
    difference = abs(float(ours) - float(theirs))
    if not difference <= within:
        raise WrongAnswerError(
            f"{what}: ours {float(ours):.6g}, theirs {float(theirs):.6g}, "
            f"apart by {difference:.2g}, allowed {within:.2g}"
        )
    return f"{what} agrees to {difference:.1g}"
