"""CPU features of this machine, for all tests.

INGOT_NATIVE names the native target, for ingot and for the tests (see docs/ingot.1). EMULATOR, a command such as
`qemu-x86_64 -cpu Haswell`, is put in front of every program below build/ that a test starts, including ingot. With INGOT_NATIVE=avx2
the tests then run as if the CPU had no AVX-512.
"""
import os

from . import target_table
from .outcome import Skip

TABLE = target_table.targets()


def _needs():
    """CPU features of a target, with the names of /proc/cpuinfo. A variant with an additional instruction is named after it."""
    found = {}
    for name, row in TABLE.items():
        found[name] = [x for x in row["needs"].split(",") if x]
        if row["dot_i8x4"] and row["dot_i8x4"] not in found:
            found[row["dot_i8x4"]] = [*found[name], row["dot_i8x4"].replace("vnni", "_vnni")]
    return found


NEEDS = _needs()
# Targets of other processors: cross compiler and emulator.
OTHER = {name: (row["cross"], "qemu-" + row["cross"].partition("-")[0]) for name, row in TABLE.items() if row["cross"].startswith(("aarch64", "arm"))}
FLAGS = {name: row["cflags"].split() for name, row in TABLE.items()}


def named():
    """The target that INGOT_NATIVE names, or None."""
    return os.environ.get("INGOT_NATIVE") or None


def words():
    found = set()
    with open("/proc/cpuinfo") as f:
        for line in f:
            key, _, rest = line.partition(":")
            if key.strip() in ("flags", "Features"):
                found.update(rest.split())
    return found


def can_run(target):
    """Can this machine run code of a target, or of a variant? Never more than INGOT_NATIVE allows."""
    allowed = list(NEEDS)[:list(NEEDS).index(named()) + 1] if named() in NEEDS else NEEDS
    return target in allowed and words().issuperset(NEEDS[target])


def need(target):
    if not can_run(target):
        raise Skip(f"this machine has no {target}" if not named() else f"INGOT_NATIVE is {named()}, or the machine has no {target}")


def flags(target):
    return FLAGS[target]


def native_flags():
    """Flags that make gcc and clang use all allowed CPU features."""
    return FLAGS[named()] if named() else ["-march=native"]


def emulated(cmd, build):
    """Puts EMULATOR before cmd if it is one of our programs, but not Python."""
    emulator, path = os.environ.get("EMULATOR", "").split(), os.path.abspath(cmd[0])
    ours = path.startswith(build + os.sep) and not path.startswith(os.path.join(build, "venv") + os.sep)
    return [*emulator, *cmd] if emulator and ours else cmd
