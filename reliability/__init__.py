"""How hard it was tried to break calibrant: a fuzzer, mutants of the core, and the page."""
