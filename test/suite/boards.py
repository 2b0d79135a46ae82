"""docs/boards.md: models as bytecode and as C on a simulated Cortex-M4 give the same bits, and take about the bytes that the table says."""
import os
import re
import sys

from lib.core import ROOT, Fail, Test, explain, need, run, tail

NEAR = 0.05  # compilers differ from version to version


def rows(text):
    """By network, its numbers."""
    found = re.findall(r"^\| ([^|]+) \|((?: [\d,]+ \|)+)$", text, re.M)
    return {name: [int(x.replace(",", "")) for x in re.findall(r"[\d,]+", numbers)] for name, numbers in found}


def table(env):
    need("arm-none-eabi-gcc")
    need("qemu-system-arm")
    got = run([sys.executable, os.path.join(ROOT, "bench", "boards.py")], 300, env={"INGOT": env.need_ingot()})
    if got.rc:
        raise Fail(f"boards: {explain(got)}: {tail(got.text(), 6)}")
    with open(os.path.join(ROOT, "docs", "boards.md")) as f:
        said, found = rows(f.read()), rows(got.out.decode())
    if not found or said.keys() != found.keys():
        raise Fail(f"the table has {sorted(said)}, expected {sorted(found)}: make boards")
    for name, numbers in found.items():
        for have, want in zip(numbers, said[name]):
            if abs(have - want) > NEAR * want:
                raise Fail(f"{name}: {have} bytes, docs/boards.md says {want}: make boards")


def tests(env):
    return [Test("boards/table", lambda: table(env), cost=10)]
