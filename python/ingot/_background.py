"""One thread that compiles while the program goes on.

In: functions. Out: events that are set when they have ended; what they raise is logged. The thread starts with the first function and is a
daemon: at the end of the process a C compiler that still runs is ended and its files are removed, so that nothing waits for it.
"""
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
_guard: Any = None  # of ingot.h: files and programs that may not outlive the process; None: no thread yet


def _loop(work: Any, guard: Any) -> None:
    while True:
        fn, done = work.get()
        try:
            fn(guard)
        except Exception as e:  # the program that was there goes on
            LOG.warning("compiling in the background failed: %s", e)
        finally:
            fn = None
            done.set()


def submit(fn: Callable[[Any], None]) -> threading.Event:
    """fn is called with a guard for the models it opens."""
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
    """In a child: the thread is not there, and what it was doing is the parent's."""
    global _lock, _work, _guard
    _lock, _work, _guard = threading.Lock(), queue.SimpleQueue(), None


atexit.register(_end)
