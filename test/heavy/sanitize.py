"""Builds of the whole compiler that nothing else needs: one official case per operator under MSan, four threads under
ThreadSanitizer."""
from lib.core import Test
from suite import faults, sanitize


def tests(env):
    return sanitize.of_kind(env, "msan", "heavy/") + [
            Test("heavy/faults/threads-tsan", lambda: faults.program(env, "tsan", "threads"), cost=60)]
