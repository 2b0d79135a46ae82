"""Shared by all test modules: the Test record, outcomes, the environment, one function to start a process."""
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from .cpu import emulated
from .outcome import Fail, Skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Starts a program with default signal handling, although nohup or a background shell may ignore signals.
MINDFUL = [sys.executable, "-c", "import os, signal, sys\nfor s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): "
           "signal.signal(s, signal.SIG_DFL)\nos.execv(sys.argv[1], sys.argv[1:])"]
ENGINES = tuple(os.environ.get("ENGINES", "ref interp vm").split())  # every engine must pass every test

# Environment of programs built by `make asan`.
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99:allocator_may_return_null=1:hard_rss_limit_mb=4000",
             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "LSAN_OPTIONS": "exitcode=99"}


@dataclass
class Test:
    name: str
    fn: object            # called without arguments; returns, or raises Fail or Skip
    cost: float = 0.0     # rough seconds; dear tests start first
    last: bool = False    # runs after all others (it looks at their results)


@dataclass
class Proc:
    rc: int
    out: bytes
    err: bytes
    secs: float
    timed_out: bool

    def text(self):
        return self.err.decode("utf-8", "replace").strip()


@dataclass
class Env:
    bless: bool = False
    verbose: bool = False
    coverage_doc: bool = False
    whole: bool = True    # no pattern was given: every test runs
    all: bool = False     # also heavy tests, and all rows of share()
    build: str = os.path.join(ROOT, "build")
    _once: dict = field(default_factory=dict)
    _lock: object = field(default_factory=threading.Lock)
    _building: object = field(default_factory=threading.Lock)

    @property
    def ingot(self):
        return os.environ.get("INGOT", os.path.join(self.build, "ingot"))

    @property
    def python(self):
        """The Python of build/venv, or None."""
        if not os.path.exists(os.path.join(self.build, "venv", "requirements.txt")):
            return None
        return os.path.join(self.build, "venv", "bin", "python")

    @property
    def data(self):
        """Folder of the official test data, or None."""
        lib = os.path.join(self.build, "venv", "lib")
        for version in os.listdir(lib) if self.python else ():
            path = os.path.join(lib, version, "site-packages", "onnx", "backend", "test", "data")
            if os.path.isdir(path):
                return path
        return None

    def need_ingot(self):
        if not os.path.exists(self.ingot):
            raise Skip("build/ingot is not built")
        return self.ingot

    def need_python(self):
        if not self.python:
            raise Skip("no Python environment (see build/setup.log)")
        return self.python

    def need_ml(self):
        return self.need_packages("ml")

    def need_packages(self, name):
        """Folder of the packages of test/requirements-NAME.txt, for PYTHONPATH."""
        self.need_python()
        path = os.path.join(self.build, name)
        if not os.path.exists(os.path.join(path, "requirements.txt")):
            raise Skip(f"the packages of test/requirements-{name}.txt could not be had (see build/setup.log)")
        return path

    def need_lm(self):
        """The Python of build/lm, which has the packages of test/requirements-lm.txt."""
        path = os.path.join(self.build, "lm", "bin", "python")
        if not os.path.exists(path):
            raise Skip("the packages of test/requirements-lm.txt could not be had (see build/setup.log)")
        return path

    def lm_script(self, name, *args, timeout=600):
        """Runs a script of test/make/ with that Python."""
        got = run([self.need_lm(), os.path.join(ROOT, "test", "make", name), *args], timeout)
        if got.rc:
            raise Fail(f"test/make/{name} ended with {got.rc}: {tail(got.text())}")
        return got.out.decode()

    def script(self, name, *args, timeout=600, path=None):
        """Runs a script of test/make/ with the Python of build/venv; path: a folder of more packages."""
        got = run([self.need_python(), os.path.join(ROOT, "test", "make", name), *args], timeout, env={"PYTHONPATH": path} if path else None)
        if got.rc:
            raise Fail(f"test/make/{name} ended with {got.rc}: {tail(got.text())}")
        return got.out.decode()

    def generated(self, out, sources, fn):
        """Calls fn(), which writes the folder out, unless the folder was written with these sources (names below test/). The first of several
        threads generates, the others wait."""
        self.once("generated " + out, lambda: self._generate(out, sources, fn))

    def _generate(self, out, sources, fn):
        digest = hashlib.sha256(ROOT.encode())
        for name in ("make/oracle.py", *sources):
            path = os.path.join(ROOT, "test", name)
            files = [os.path.join(path, f) for f in sorted(os.listdir(path)) if f.endswith(".py")] \
                if os.path.isdir(path) else [path]
            for file in files:
                with open(file, "rb") as f:
                    digest.update(f.read())
        stamp = os.path.join(out, ".sources")
        if os.path.exists(stamp) and open(stamp).read() == digest.hexdigest():
            return
        fn()
        with open(stamp, "w") as f:
            f.write(digest.hexdigest())

    def cases(self, name, script, sources, path=None):
        """(folder, table): the output of test/make/SCRIPT in build/NAME, with its cases.json."""
        out = os.path.join(self.build, name)

        def make():
            shutil.rmtree(out, ignore_errors=True)
            os.makedirs(out)
            self.script(script, out, path=path)
        self.generated(out, ["make/" + script, "requirements.txt", *sources], make)
        with open(os.path.join(out, "cases.json")) as f:
            return out, json.load(f)

    def once(self, key, fn):
        """Result of fn(), computed by the first caller; its exception is raised for every caller."""
        with self._lock:
            slot = self._once.setdefault(key, [threading.Lock(), None, None])
        with slot[0]:
            if slot[1] is None and slot[2] is None:
                try:
                    slot[1] = (fn(),)
                except (Fail, Skip) as e:
                    slot[2] = e
        if slot[2] is not None:
            raise slot[2]
        return slot[1][0]

    def make(self, target):
        """Runs `make TARGET` once; targets that build into the same folder run one at a time."""
        def build():
            with self._building:
                got = run(["make", "-C", ROOT, target], 900, merge=True)
            if got.rc:
                raise Fail(f"make {target} failed: {tail(got.out.decode('utf-8', 'replace'))}")
        self.once("make " + target, build)

    def share(self, rows, every, name):
        """Distributes rows over builds: one of `every` for most names; with --all four times as many."""
        every = max(1, every // 4) if self.all else every
        return rows[sum(map(ord, name)) % min(every, max(1, len(rows)))::every]

    def scratch(self, *names):
        path = os.path.join(self.build, "tmp", *names)
        os.makedirs(path, exist_ok=True)
        return path


def tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


def patience():
    """Factor by which other load on this machine may slow a program down."""
    return min(5.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def run(cmd, timeout, stdin=None, env=None, cwd=None, merge=False, memory=None, cpu=None):
    """Runs cmd until it ends or reaches the time limit, which is longer on a busy machine; then kills its process group. memory: bytes of
    address space; cpu: seconds of CPU time, which do not depend on other load."""
    start = time.monotonic()
    cmd = emulated(cmd, os.path.join(ROOT, "build"))
    p = subprocess.Popen(cmd, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merge else subprocess.PIPE,
                         env={**os.environ, **env} if env else None, cwd=cwd, start_new_session=True)
    try:
        if memory:
            resource.prlimit(p.pid, resource.RLIMIT_AS, (memory, memory))
        if cpu:
            resource.prlimit(p.pid, resource.RLIMIT_CPU, (cpu, cpu + 1))
    except OSError:
        pass  # it has ended already
    timed_out = False
    try:
        try:
            out, err = p.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            out, err = p.communicate(timeout=timeout * (patience() - 1))
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
    return Proc(p.returncode, out or b"", err or b"", time.monotonic() - start, timed_out)


def explain(got):
    """One line about how a process ended."""
    if got.timed_out:
        return f"still running after {got.secs:.0f} s"
    if got.rc < 0:
        return f"killed by {signal.Signals(-got.rc).name}"
    return f"exit {got.rc}"


def must(cmd, what, rc=0, timeout=240, **how):
    """Standard output of a process that must end with rc; how: keyword arguments of run()."""
    got = run(cmd, timeout, **how)
    if got.rc != rc or got.timed_out:
        raise Fail(f"{what}: {explain(got)}: {tail(got.text() or got.out.decode('utf-8', 'replace'), 6)}")
    return got.out.decode()


def want(condition, text):
    if not condition:
        raise Fail(text)


def need(tool):
    """Path of a program; skips the test if it is not installed."""
    if not shutil.which(tool):
        raise Skip(f"{tool} is not installed")
    return tool
