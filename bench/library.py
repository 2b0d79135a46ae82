"""Builds models as shared libraries and loads them into the calling process, so that they can take turns there."""
import ctypes
import os
import re
import subprocess

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Library:
    """A model that `ingot build` makes into a library with these options. Arrays are arguments, inputs before outputs."""

    def __init__(self, folder, model, name, options):
        lib = os.path.join(folder, f"lib{name}.so")
        subprocess.run([os.path.join(ROOT, "build", "ingot"), "build", model, "-o", lib, "--name", name, "--quiet", *options], check=True)
        with open(os.path.join(folder, f"lib{name}.h")) as f:
            self.macro = dict(re.findall(r"#define \w+?_((?:IN|OUT)PUT\w+|ARENA_BYTES) (.+)", f.read()))
        self.function = getattr(ctypes.CDLL(lib), name + "_run")
        self.room = np.zeros(int(self.macro["ARENA_BYTES"]) + 64, np.uint8)
        self.arena = ctypes.c_void_p((self.room.ctypes.data + 63) // 64 * 64)

    def names(self, kind):
        """Names of kind "INPUT" or "OUTPUT", in order."""
        return [self.macro[f"{kind}{i}_NAME"].strip('"') for i in range(int(self.macro[kind + "S"]))]

    def outputs(self):
        """Arrays for the outputs."""
        return [np.zeros(8 * int(self.macro[f"OUTPUT{i}_ELEMENTS"]), np.uint8) for i in range(int(self.macro["OUTPUTS"]))]

    def words(self, arrays):
        """Arguments for these arrays, which must outlive them."""
        return [self.arena, *(ctypes.c_void_p(a.ctypes.data) for a in arrays)]
