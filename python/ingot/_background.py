"""One thread that compiles in the background.

In: functions. Out: events, set when the function has ended; exceptions are logged. The thread starts with the first function. It is a
daemon: at the end of the process, a running C compiler is killed and its files are removed."""
from __future__ import annotations

import atexit
import logging
import queue
import threading
from typing import Any, Callable

from ._lib import library

LOG = logging.getLogger("ingot")
_lock = threading.Lock()
_work: queue.SimpleQueue[tuple[Callable[[Any], None], threading.Event]] = queue.SimpleQueue()
_guard: Any = None  # guard of ingot.h for temporary files and child processes; None: no thread yet


def _loop(work: Any, guard: Any) -> None:
    while True:
        fn, done = work.get()
        try:
            fn(guard)
        except Exception as e:  # the previous program stays in use
            LOG.warning("compiling in the background failed: %s", e)
        finally:
            fn = None
            done.set()


def submit(fn: Callable[[Any], None]) -> threading.Event:
    """Runs fn in the thread. fn receives a guard for the models that it opens."""
    global _guard
    done = threading.Event()
    with _lock:
        if _guard is None:
            _guard = library().ingot_guard_new(None, None)
            threading.Thread(target=_loop, args=(_work, _guard), name="ingot-compile", daemon=True).start()
        _work.put((fn, done))
    return done


def _end() -> None:
    if _guard is not None:
        library().ingot_guard_end(_guard)


def forked() -> None:
    """Resets the state in a child process, in which the thread does not exist."""
    global _lock, _work, _guard
    _lock, _work, _guard = threading.Lock(), queue.SimpleQueue(), None


atexit.register(_end)
