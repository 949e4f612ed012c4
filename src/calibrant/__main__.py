"""``python -m calibrant``: the command."""

from calibrant.cli import main

main(prog_name="calibrant")
