#!/usr/bin/env python3
"""Runs the peers as if the CPU had no AVX-512.

    bench/held.py [FOLDER]         copies of the peers' packages under build/bench-held (or FOLDER)

Runtimes choose their kernels by CPUID, and most have no option for it. This script copies their libraries and replaces every `cpuid`
instruction by a faulting one of the same length. bench/held.c, loaded first, handles the fault and answers without AVX-512. The
runtimes then run their AVX2 kernels. `bench/peers.py --held` measures so; ingot is built with --march avx2.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(HERE), "build")
FOLDER = os.path.join(BUILD, "bench-held")
PACKAGES = ("onnxruntime", "openvino", "MNN", "mnn.libs", "_mnncengine*", "_tools*")
CPUID, FAULT = b"\x0f\xa2", b"\x0f\x0b"


def segments(data):
    """(address, offset in the file, bytes) of the loaded segments of a 64-bit ELF file."""
    start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, start + i * size)
        if kind == 1:
            yield address, offset, length


def hold(path):
    """Replaces every cpuid instruction of the library by the faulting one; returns their number."""
    text = subprocess.run(f"objdump -d --no-show-raw-insn '{path}' | grep -w cpuid", shell=True, stdout=subprocess.PIPE, text=True).stdout
    with open(path, "rb") as f:
        data = bytearray(f.read())
    found = [int(x, 16) for x in re.findall(r"^\s*([0-9a-f]+):", text, re.M)]
    for at in found:
        place = next(at - address + offset for address, offset, length in segments(data) if address <= at < address + length)
        if data[place:place + 2] != CPUID:
            raise SystemExit(f"held.py: {path}: no cpuid at {at:x}")
        data[place:place + 2] = FAULT
    if found:
        os.unlink(path)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o755)
    return len(found)


def has_cpuid(path):
    with open(path, "rb") as f:
        head = f.read(4)
        return head == b"\x7fELF" and CPUID in head + f.read()


def make(site, folder=FOLDER):
    """Makes the copies, unless they are newer than the packages. Unchanged files are hard links."""
    mark = os.path.join(folder, "done")
    if os.path.exists(mark) and os.path.getmtime(mark) > os.path.getmtime(site):
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in sorted(os.listdir(site)):
        if not any(re.fullmatch(p.replace("*", ".*"), name) for p in PACKAGES):
            continue
        whole = os.path.join(site, name)
        if os.path.isdir(whole):
            shutil.copytree(whole, os.path.join(folder, name), copy_function=os.link, symlinks=True)
        else:
            os.link(whole, os.path.join(folder, name))
    for top, _, names in os.walk(folder):
        for path in (os.path.join(top, n) for n in names if ".so" in n and "gpu" not in n and "npu" not in n):
            if not os.path.islink(path) and has_cpuid(path):
                print(f"held: {os.path.relpath(path, folder)}: {hold(path)} cpuid", file=sys.stderr)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "held.c"), "-o", os.path.join(folder, "held.so")], check=True)
    open(mark, "w").close()


def environment(folder=FOLDER):
    """Environment variables for a peer's process."""
    return {**os.environ, "LD_PRELOAD": os.path.join(folder, "held.so"), "PYTHONPATH": folder}


if __name__ == "__main__":
    import peers
    peers.enter_venv()
    make(sysconfig.get_path("purelib"), *sys.argv[1:2])
