"""Keep doctest collection from running the pages; tests/test_propositions.py does."""

collect_ignore_glob = ["plot_*.py"]
