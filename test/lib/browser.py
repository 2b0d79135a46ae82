"""Drives a headless Chromium in tests; needs no package but the browser's own.

    with Browser(env) as b:
        page = b.open("file:///.../report.html", dark=True, width=500, height=700)
        page.click("#search"); page.type("conv1"); page.key("Enter")
        page.wait("document.querySelector('.found')")
        page.shot("report.png")
        page.fine()          # fails after a console error or a request to another address

Messages are JSON texts, each ended by a zero byte, on two pipes (--remote-debugging-pipe).
"""
import base64
import functools
import http.server
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from .core import Fail, Skip

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60  # seconds that an immediate action may take on a busy machine
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows", "--disable-background-timer-throttling",
          "--disable-component-update", "--disable-sync", "--mute-audio", "--remote-debugging-pipe")
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "ArrowDown": (40, ""), "ArrowUp": (38, ""), "ArrowLeft": (37, ""),
        "ArrowRight": (39, ""), "Home": (36, ""), "End": (35, ""), " ": (32, " ")}


def find():
    """Path of the program, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Serve:
    """Serves a folder at http://127.0.0.1:PORT/, for pages that a browser does not run from a file."""
    def __init__(self, folder, headers=()):
        class Handler(http.server.SimpleHTTPRequestHandler):
            extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm", ".js": "text/javascript",
                              ".mjs": "text/javascript"}

            def end_headers(self):
                for name, value in headers:
                    self.send_header(name, value)
                super().end_headers()

            def log_message(self, *args):
                pass
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class Browser:
    def __init__(self, env=None, flags=()):
        self.program = find()
        if not self.program:
            raise Skip("no browser: Debian's package chromium has one")
        self.flags, self.pages, self.answers, self.number, self.rest = flags, {}, {}, 0, b""

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix="browser-")
        theirs_in, self.out = os.pipe()
        self.inp, theirs_out = os.pipe()

        def pipes():  # the browser reads from 3 and writes to 4
            os.setsid()
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3)
            os.dup2(b, 4)
        with open(os.path.join(self.home, "log"), "wb") as log:
            self.process = subprocess.Popen([self.program, *FLAGS, *self.flags, f"--user-data-dir={self.home}/data"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, close_fds=False, preexec_fn=pipes, env={**os.environ, "HOME": self.home})
        os.close(theirs_in)
        os.close(theirs_out)
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.inp)
        for _ in range(50):  # its other processes may still be writing there
            shutil.rmtree(self.home, ignore_errors=True)
            if not os.path.exists(self.home):
                break
            time.sleep(0.1)

    def listen(self, end):
        """Handles one message, or raises Fail after the time limit."""
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise Fail("the browser does not answer")
            data = os.read(self.inp, 1 << 20)
            if not data:
                with open(os.path.join(self.home, "log"), errors="replace") as f:
                    raise Fail(f"the browser has ended: {f.read()[-500:]}")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        said = json.loads(text)
        if "id" in said:
            self.answers[said["id"]] = said
        elif said.get("sessionId") in self.pages:
            self.pages[said["sessionId"]].hear(said["method"], said["params"])

    def ask(self, method, session=None, seconds=PATIENCE, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        data = json.dumps(question).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        end = time.monotonic() + seconds
        while self.number not in self.answers:
            self.listen(end)
        answer = self.answers.pop(self.number)
        if "error" in answer:
            raise Fail(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def open(self, url, dark=False, width=1200, height=800, folder=None):
        return Page(self, url, dark, width, height, folder)


class Page:
    """errors: console errors, exceptions and failed requests; asked: requested addresses."""
    def __init__(self, browser, url, dark, width, height, folder):
        self.b, self.url, self.errors, self.asked, self.loaded = browser, url, [], [], False
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        if folder:
            self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        self.ask("Page.bringToFront")  # pages in the background are not drawn
        self.ask("Page.navigate", url=url)
        end = time.monotonic() + PATIENCE
        while not self.loaded:
            browser.listen(end)

    def ask(self, method, **params):
        return self.b.ask(method, self.session, **params)

    def hear(self, method, p):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.errors.append(d.get("exception", {}).get("description") or d["text"])
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif method == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.errors.append(p["entry"]["text"] + " " + p["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            self.asked.append(p["request"]["url"])

    def eval(self, text):
        """Returns the value of an expression; waits for a promise."""
        got = self.ask("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            d = got["exceptionDetails"]
            raise Fail(f"{text[:80]}: {d.get('exception', {}).get('description') or d['text']}")
        return got["result"].get("value")

    def wait(self, text, seconds=PATIENCE):
        """Waits until a JavaScript expression is true; returns its value."""
        end = time.monotonic() + seconds
        while True:
            is_true, value = self.eval(f"(async () => {{ const v = await ({text}); return [!!v, v instanceof Node ? true : v]; }})()")
            if is_true:
                return value
            if time.monotonic() > end:
                raise Fail(f"{self.url}: this does not become true: {text}; errors: {self.errors}")
            time.sleep(0.05)

    def place(self, selector):
        """Center of the first element of a CSS selector, scrolled into view."""
        at = self.eval(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null; e.scrollIntoView({{block: 'nearest'}});"
                       " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        if not at:
            raise Fail(f"{self.url}: no element {selector}")
        return at

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector):
        x, y = self.place(selector)
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def drag(self, points):
        """Moves along a list of (x, y) with the left button pressed."""
        self.mouse("mouseMoved", *points[0])
        self.mouse("mousePressed", *points[0], button="left", buttons=1, clickCount=1)
        for x, y in points[1:]:
            self.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.mouse("mouseReleased", *points[-1], button="left", clickCount=1)

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def key(self, name, times=1, modifiers=0):
        """Presses a key of KEYS, or a character; modifiers: 1 Alt, 2 Ctrl, 8 Shift."""
        code, text = KEYS.get(name) or (ord(name.upper()), name)
        for _ in range(times):
            self.ask("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, modifiers=modifiers,
                     **({"text": text} if text else {}))
            self.ask("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code, modifiers=modifiers)

    def shot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def fine(self, outside=False):
        """Fails after a console error, or after a request to another address unless outside is allowed."""
        if self.errors:
            raise Fail(f"{self.url}: errors on the console: {self.errors[:3]}")
        begin = self.url.split("/", 3)[0:3]
        strange = [u for u in self.asked if u != self.url and not u.startswith(("data:", "blob:")) and (begin[0] == "file:" or u.split("/", 3)[0:3] != begin)]
        if strange and not outside:
            raise Fail(f"{self.url}: it asks for {strange[:3]}")
