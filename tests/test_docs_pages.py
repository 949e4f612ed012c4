"""What runs the pages: in order, in one namespace, and it notices what is wrong."""

import pytest
from pages import Page, alike

SAMPLE = """
<!-- setup
x = 2
-->

```python
print(x + 1)
```

<!-- output -->
```text
3
```

```python
>>> x * 10
20
>>> y = 1

```

```console
$ echo hello; exit 3
hello
```
"""


def test_a_page_runs_in_order_and_in_one_namespace(tmp_path):
    page = Page(SAMPLE, tmp_path).run()
    assert page.wrong() == []
    assert [shown for _, _, shown, _ in page.outputs if shown] == [
        "3\n",
        "20\n",
        "hello\n",
    ]
    assert page.rewritten() == SAMPLE


@pytest.mark.parametrize(
    "wrong", [("3\n", "4\n"), ("20\n", "21\n"), ("hello\n", "h\n")]
)
def test_a_page_that_shows_something_else_is_found_and_mended(wrong, tmp_path):
    page = Page(SAMPLE.replace(*wrong, 1), tmp_path).run()
    assert len(page.wrong()) == 1
    assert page.rewritten() == SAMPLE


@pytest.mark.parametrize("block", ["raise ValueError", ">>> 1 / 0\n1\n"])
def test_a_page_that_fails_is_an_error(block, tmp_path):
    with pytest.raises((ValueError, ZeroDivisionError)):
        Page(f"```python\n{block}\n```\n", tmp_path).run()


def test_a_command_that_fails_without_showing_it_is_an_error(tmp_path):
    with pytest.raises(AssertionError, match="exit 1"):
        Page("```console\n$ exit 1\n```\n", tmp_path).run()


def test_numbers_of_trained_models_may_differ_a_little():
    assert alike("Brier 0.52 of 1,438 rows", "Brier 0.53 of 1,438 rows", exact=False)
    assert not alike("Brier 0.52", "Brier 0.53")
    assert not alike("Brier 0.52", "Brier 0.62", exact=False)
    assert not alike("Brier 0.52", "ECE 0.52", exact=False)
