"""``calibrant`` and ``python -m calibrant``: the command.

An interrupt while the rest is being loaded ends it at once, without a traceback.
"""

import os
import signal
from typing import Any

INTERRUPTED = 130


def leave(*_: Any) -> None:
    """End at once: there is nothing yet to put in order."""
    os._exit(INTERRUPTED)


def main() -> None:
    """Load the command and run it."""
    before = signal.signal(signal.SIGINT, leave)
    from calibrant.cli import main as command

    signal.signal(signal.SIGINT, before)
    command(prog_name="calibrant")


if __name__ == "__main__":
    main()
