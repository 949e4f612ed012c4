"""Run the pages of the documentation: every block of code, in order, in one folder.

A page is Markdown. What runs in it:

- ``python`` blocks, with prompts (then they are doctests) or without;
- ``console`` blocks: lines that start with ``$`` are run by a shell, what follows them
  is what they print;
- ``yaml`` blocks: lines of the form ``run: calibrant ...``;
- what stands in a comment ``<!-- setup ... -->``, as Python that readers do not see;
- a ``text`` block after the comment ``<!-- output -->`` is what the blocks without
  prompts have printed since the last such block.

`python tests/pages.py PAGE...` runs pages and writes what they print into them; with
`--check` it only compares. It needs nothing but what the pages themselves need.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|(?P<mark>^<!-- output -->\n+)?^(?P<fence>```+)(?P<language>[^\n`]*)\n"
    r"(?P<body>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)\n", re.MULTILINE)
RUN_LINE = re.compile(r"^ *-? *run: (calibrant .*)$", re.MULTILINE)
IMPORT = re.compile(r"^(?:>>> )?(?:import|from) (\w+)", re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
NOT_RUN = re.compile(r"(?:pip install|make|git) ")
"""Commands that set things up: CI itself and the test of the tutorial run them."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and where the text is in the page."""

    language: str
    body: str
    start: int
    line: int
    is_output: bool

    @property
    def is_doctest(self):
        return self.language == "python" and ">>> " in self.body


def blocks_of(text):
    """The fenced blocks of a page, and its hidden ones."""
    return [_block(match, text) for match in FENCE.finditer(text)]


def _block(match, text):
    part = "body" if match["setup"] is None else "setup"
    language = "python" if part == "setup" else match["language"].strip()
    start = match.start(part)
    line = text.count("\n", 0, start) + 1
    return Block(language, match[part], start, line, match["mark"] is not None)


def packages_of(blocks):
    """What the Python blocks import, apart from calibrant, NumPy and Python's own."""
    code = "\n".join(block.body for block in blocks if block.language == "python")
    known = {"calibrant", "numpy"} | sys.stdlib_module_names
    behind = {"torch", "torchmetrics"} if "from calibrant.torch " in code else set()
    return sorted(set(IMPORT.findall(code)) - known | behind)


def about(text):
    """The text with numbers replaced, and the numbers."""
    numbers = [float(found.replace(",", "")) for found in NUMBER.findall(text)]
    return re.sub(r"\s+", " ", NUMBER.sub("#", text)), numbers


def alike(shown, printed, *, exact=True):
    """Whether two texts agree; if not exact, to about the second digit of numbers."""
    flags = doctest.ELLIPSIS
    if doctest.OutputChecker().check_output(shown, printed, flags):
        return True
    if exact:
        return False
    (words, numbers), (others, found) = about(shown), about(printed)
    close = (
        abs(x - y) <= 0.03 + 0.05 * abs(x) for x, y in zip(numbers, found, strict=False)
    )
    return words == others and len(numbers) == len(found) and all(close)


class Recorder(doctest.DocTestRunner):
    """Keeps what each example printed; what raises is an error at once."""

    def __init__(self):
        super().__init__(optionflags=doctest.ELLIPSIS)
        self.answers = []

    def report_success(self, out, test, example, got):
        if example.exc_msg is None:
            self.answers.append((example, got))

    def report_failure(self, out, test, example, got):
        self.answers.append((example, got))

    def report_unexpected_exception(self, out, test, example, exc_info):
        raise exc_info[1]


class Page:
    """A page that is being run: its variables, its folder, and what it printed."""

    def __init__(self, text, folder, name="page", variables=None):
        self.text, self.folder, self.name = text, Path(folder), name
        self.variables = {"__name__": "page", **(variables or {})}
        self.printed = ""
        self.outputs = []  # (start, end, shown, printed), to be compared or written

    def run(self):
        """Run all blocks; afterwards `outputs` has what was shown and what came."""
        with contextlib.chdir(self.folder):
            for block in blocks_of(self.text):
                self._run(block)
        return self

    def wrong(self, *, exact=True):
        """Say of each output that differs what is shown and what came."""
        return [
            f"{self.name}: shown\n{shown}\nprinted\n{printed}"
            for _, _, shown, printed in self.outputs
            if not alike(shown, printed, exact=exact)
        ]

    def rewritten(self):
        """The page with what came in place of what was shown."""
        text = self.text
        for start, end, _, printed in reversed(self.outputs):
            text = text[:start] + printed + text[end:]
        return text

    def _run(self, block):
        if block.is_output:
            end = block.start + len(block.body)
            self.outputs.append((block.start, end, block.body, self.printed))
            self.printed = ""
        elif block.is_doctest:
            self._run_doctest(block)
        elif block.language == "python":
            self._run_python(block)
        elif block.language == "console":
            self._run_console(block)
        elif block.language == "yaml":
            for command in RUN_LINE.findall(block.body):
                self.shell(command, must_succeed=True)

    def _run_python(self, block):
        code = compile("\n" * (block.line - 1) + block.body, self.name, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as caught:
            exec(code, self.variables)  # noqa: S102
        self.printed += caught.getvalue()

    def _run_doctest(self, block):
        test = doctest.DocTestParser().get_doctest(
            block.body, self.variables, self.name, self.name, block.line - 1
        )
        recorder = Recorder()
        recorder.run(test, clear_globs=False)
        self.variables.update(test.globs)
        lines = block.body.splitlines(keepends=True)
        for example, got in recorder.answers:
            before = example.lineno + example.source.count("\n")
            start = block.start + sum(map(len, lines[:before]))
            self.outputs.append((start, start + len(example.want), example.want, got))

    def _run_console(self, block):
        found = list(COMMAND.finditer(block.body))
        ends = [match.start() for match in found[1:]] + [len(block.body)]
        for match, end in zip(found, ends, strict=True):
            if NOT_RUN.match(match[1]):
                continue
            shown = block.body[match.end() : end]
            printed = self.shell(match[1], must_succeed=not shown)
            if shown:
                place = (block.start + match.end(), block.start + end)
                self.outputs.append((*place, shown, printed))

    def shell(self, command, *, must_succeed=False):
        """What a command prints, on both streams, as in a terminal."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        run = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONWARNINGS": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert run.returncode == 0 or not must_succeed, f"{command}\n{run.stdout}"
        return run.stdout


def is_python(text):
    """Whether a block without a language is Python."""
    try:
        compile(text, "block", "exec")
    except SyntaxError:
        return False
    return True


def main():
    """Write into the named pages what they print; with --check, only compare."""
    check, names = "--check" in sys.argv[1:], [x for x in sys.argv[1:] if x[:2] != "--"]
    for path in map(Path, names):
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            page = Page(text, folder, path.name).run()
        wrong = page.wrong(exact=not packages_of(blocks_of(text)))
        if not check:
            path.write_text(page.rewritten(), encoding="utf-8")
        elif wrong:
            raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
