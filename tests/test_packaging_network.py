"""No network: neither at import nor in any command but `infer`."""

import os
import platform
import subprocess
import sys
import textwrap
from functools import cache

import numpy as np
import pytest

ROWS = 300

COMMANDS = """
demo --output demo
report a.npz --output report.html
report a.csv b.parquet
study a.npz --folds 2 --methods temperature
recalibrate --fit a.npz --apply b.npz --output out.npz
compare a.npz a.csv
curves a.npz --output risk.png
groups a.csv --slices prob_0
explain a.csv --by prob_0
monitor a.npz b.parquet --state state.npz
sketch a.npz --output monday.npz
sketch b.parquet --output tuesday.npz
merge monday.npz tuesday.npz --output week.npz
inspect b.parquet
""".strip().splitlines()

# The audit hook sees what Python does, on every system. The filter of system calls sees
# libraries such as DuckDB, too: the kernel ends a process that asks for a socket of IPv4 or
# IPv6 (number 41 is `socket` on x86-64; its first argument is the family, 2 or 10).
GUARD = """
import ctypes, os, platform, struct, sys

EVENTS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}

def refuse(event, arguments):
    if event in EVENTS:
        os.write(2, f"network: {event} {arguments[-1]!r}\\n".encode())
        os._exit(86)

def load(offset):
    return struct.pack("HBBI", 0x20, 0, 0, offset)

def skip_unless(value, otherwise):
    return struct.pack("HBBI", 0x15, 0, otherwise, value)

def skip_if(value, then):
    return struct.pack("HBBI", 0x15, then, 0, value)

def end(how):
    return struct.pack("HBBI", 0x06, 0, 0, how)

def filter_system_calls():
    allow, kill = end(0x7FFF0000), end(0x80000000)
    program = [load(4), skip_unless(0xC000003E, 5), load(0), skip_unless(41, 3),
               load(16), skip_if(2, 2), skip_if(10, 1), allow, kill]
    code = ctypes.create_string_buffer(b"".join(program))
    described = ctypes.create_string_buffer(
        struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if prctl(38, 1, 0, 0, 0) or prctl(22, 2, ctypes.addressof(described), 0, 0):
        raise OSError(ctypes.get_errno(), "no filter of system calls")

if "kernel" in sys.argv:
    filter_system_calls()
if "python" in sys.argv:
    sys.addaudithook(refuse)
"""


@cache
def guards():
    """Which guards work here."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return ["python"]
    probe = subprocess.run(
        [sys.executable, "-c", GUARD, "kernel"], capture_output=True, check=False
    )
    return ["python", "kernel"] if probe.returncode == 0 else ["python"]


def run(code, *, cwd, by=None):
    """Run code behind the guards; without a proxy, which would be reached all the same."""
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    command = [sys.executable, "-c", GUARD + textwrap.dedent(code), *(by or guards())]
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("guard", guards())
@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9), timeout=1)",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')",
    ],
)
def test_the_guards_end_what_reaches_for_the_network(tmp_path, guard, code):
    done = run(code, cwd=tmp_path, by=[guard])
    assert done.returncode == {"python": 86, "kernel": -31}[guard], done.stderr


def test_the_guards_let_everything_else_be(tmp_path):
    done = run("import numpy; print(numpy.arange(3).sum())", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "3\n")


def test_no_import_reaches_for_the_network(tmp_path):
    code = """
    import calibrant
    for name in calibrant.__all__:
        getattr(calibrant, name)
    import calibrant.cli, calibrant.vision
    """
    done = run(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def folder(tmp_path):
    import duckdb

    rng = np.random.default_rng(0)
    for name in "ab":
        probs = rng.dirichlet(np.ones(3), size=ROWS)
        labels = np.array([rng.choice(3, p=p) for p in probs])
        np.savez(tmp_path / f"{name}.npz", labels=labels, probs=probs)
        lines = (
            ",".join(map(str, (label, *p)))
            for label, p in zip(labels, probs, strict=True)
        )
        text = "\n".join(["label,prob_0,prob_1,prob_2", *lines])
        (tmp_path / f"{name}.csv").write_text(text)
        table = duckdb.read_csv(str(tmp_path / f"{name}.csv"))
        table.write_parquet(str(tmp_path / f"{name}.parquet"))
    return tmp_path


RUN = """
from click.testing import CliRunner
from calibrant.cli import main
import shlex, warnings
warnings.simplefilter("ignore")
for line in {lines!r}:
    done = CliRunner().invoke(main, shlex.split(line))
    assert done.exit_code == 0, (line, done.output, done.exception)
print("all")
"""


@pytest.mark.slow
def test_no_command_but_infer_reaches_for_the_network(folder, part):
    part("sklearn")  # the demonstration
    done = run(RUN.format(lines=COMMANDS), cwd=folder)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr


def test_every_command_but_infer_is_tried():
    from calibrant import cli

    tried = {line.split()[0] for line in COMMANDS}
    assert tried == set(cli.COMMANDS) - {"infer"}


def test_an_address_is_no_file_and_is_not_fetched(folder):
    lines = [
        f"report {kind}://127.0.0.1:9/a.{ending}"
        for kind in ("http", "https", "s3", "hf", "file")
        for ending in ("parquet", "csv", "npz")
    ]
    code = RUN.replace("== 0", "== 1").format(lines=lines)
    done = run(code, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr
