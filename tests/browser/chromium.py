"""A headless Chromium, driven over a pair of pipes: no package is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
# The browser reads commands from file 3 and answers in file 4. The two are first moved
# out of the way, for they may have these very numbers.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(given), fcntl.F_DUPFD, 10) for given in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
    os.close(end)
os.execvp(sys.argv[3], sys.argv[3:])
"""
PATIENCE = 60.0
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36,
        "End": 35, "PageUp": 33, "PageDown": 34, "Escape": 27, "Tab": 9, "Enter": 13}  # fmt: skip


def find_chromium():
    """The browser's file, or None: a path in CALIBRANT_CHROMIUM, or a command."""
    named = os.environ.get("CALIBRANT_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("google-chrome")


class Chromium:
    """The browser process; `page()` opens a tab."""

    def __init__(self, program=None):
        self.profile = tempfile.mkdtemp(prefix="calibrant-chromium-")
        child_reads, self.outgoing = os.pipe()
        self.incoming, child_writes = os.pipe()
        command = [
            program or find_chromium(),
            *FLAGS,
            f"--user-data-dir={self.profile}",
        ]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                LAUNCH,
                str(child_reads),
                str(child_writes),
                *command,
            ],
            pass_fds=(child_reads, child_writes),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_reads)
        os.close(child_writes)
        self.buffer, self.count, self.events = b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("Browser.close")
        self.process.wait(PATIENCE)
        os.close(self.outgoing)
        os.close(self.incoming)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **params):
        """Send a command and wait for its answer; events met on the way are kept."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.incoming], [], [], PATIENCE)
            part = os.read(self.incoming, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser ended, or does not answer.")
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def page(self, **options):
        """A new tab."""
        return Page(self, **options)


class Page:
    """One tab: what it shows, what it asked for, and what went wrong in it."""

    def __init__(self, browser, *, width=1360, height=900, script=True, scheme="light"):
        self.browser = browser
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        self.target = browser.call(
            "Target.createTarget", url="about:blank", browserContextId=context
        )["targetId"]
        self.session = browser.call(
            "Target.attachToTarget", targetId=self.target, flatten=True
        )["sessionId"]
        self.context = context
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        if not script:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.media(scheme)
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    def call(self, method, **params):
        """A command to this tab."""
        return self.browser.call(method, self.session, **params)

    def resize(self, width, height=900):
        """Set the size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip

    def media(self, scheme="light"):
        """What the reader prefers: a colour scheme, and no motion."""
        features = [
            ("prefers-color-scheme", scheme),
            ("prefers-reduced-motion", "reduce"),
        ]
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": value} for name, value in features],
        )

    def open(self, url):
        """Load a page and wait until it is there."""
        self.call("Page.navigate", url=str(url))
        self._await_event("Page.loadEventFired")
        return self

    def _await_event(self, method):
        end = time.monotonic() + PATIENCE
        while not self.seen(method):
            if time.monotonic() > end:
                raise RuntimeError(f"no {method}.")
            self.call("Runtime.getIsolateId")
        self.browser.events[:] = [
            e for e in self.browser.events if e["method"] != method
        ]

    def seen(self, method):
        """Events of this name in this tab."""
        events = self.browser.events
        return [
            e["params"]
            for e in events
            if e.get("method") == method and e.get("sessionId") == self.session
        ]

    def run(self, expression):
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True, awaitPromise=True, userGesture=True)  # fmt: skip
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", details).get("description"))
        return answer["result"].get("value")

    def wait(self, condition):
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise RuntimeError(f"never true: {condition}")
            time.sleep(0.02)

    def settle(self):
        """Wait until two frames are drawn; never so in a page without script."""
        self.run(
            "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
        )

    def text(self, selector):
        """The text of the first element."""
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts(self, selector):
        """The texts of all elements."""
        found = f"[...document.querySelectorAll({json.dumps(selector)})]"
        return self.run(f"{found}.map(e => e.textContent)")

    def box(self, selector):
        """Left, top, width and height in the window, scrolled into view."""
        return self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = "
            "e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })"
            f"(document.querySelector({json.dumps(selector)}))"
        )

    def point(self, selector, x=0.5, y=0.5, *, press=False):
        """Move the mouse to a place within an element, and press if asked."""
        left, top, width, height = self.box(selector)
        at = {"x": left + x * width, "y": top + y * height}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
        for kind in ("mousePressed", "mouseReleased") if press else ():
            self.call("Input.dispatchMouseEvent", type=kind, button="left",
                      clickCount=1, **at)  # fmt: skip
            self.settle()  # a hand presses for some frames, in which a page may draw
        self.settle()

    def click(self, selector):
        """Press the mouse in the middle of an element."""
        self.point(selector, press=True)

    def focus(self, selector):
        """Give an element the keyboard."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")

    def press(self, key, times=1, *, shift=False):
        """Press a key."""
        for _ in range(times):
            for kind in ("rawKeyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                          windowsVirtualKeyCode=KEYS[key], modifiers=8 * shift)  # fmt: skip
        self.settle()

    def problems(self):
        """Errors of the console, exceptions, and what the content policy refused."""
        logged = [e["entry"]["text"] for e in self.seen("Log.entryAdded")
                  if e["entry"]["level"] in ("error", "warning")]  # fmt: skip
        said = [str(e["args"]) for e in self.seen("Runtime.consoleAPICalled")
                if e["type"] in ("error", "warning")]  # fmt: skip
        thrown = [
            e["exceptionDetails"]["text"] for e in self.seen("Runtime.exceptionThrown")
        ]
        return logged + said + thrown

    def requests(self):
        """Addresses the page asked for."""
        return [e["request"]["url"] for e in self.seen("Network.requestWillBeSent")]

    def picture(self, path):
        """The whole page as a PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "scale": 1,
            "width": size["width"],
            "height": size["height"],
        }
        data = self.call(
            "Page.captureScreenshot", clip=clip, captureBeyondViewport=True
        )
        Path(path).write_bytes(base64.b64decode(data["data"]))

    def printed(self):
        """The page as a PDF, as its style asks for."""
        options = {"preferCSSPageSize": True, "printBackground": True}
        return base64.b64decode(self.call("Page.printToPDF", **options)["data"])
