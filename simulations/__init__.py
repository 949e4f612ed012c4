"""How calibrant does where the truth is known: `python -m simulations --help`."""
