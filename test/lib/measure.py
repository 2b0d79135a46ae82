"""Runs a command and prints its exit code, seconds of processor time and peak memory in bytes: measure.py COMMAND...

A process of its own, and little else in it: what is forked begins with the peak of where it comes from.
"""
import os
import sys

pid = os.fork()
if not pid:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
