"""Runs a command and prints its exit code, CPU seconds and peak memory in bytes: measure.py COMMAND...

A separate small process, because the peak memory of a child starts at that of its parent.
"""
import os
import sys

pid = os.fork()
if not pid:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
