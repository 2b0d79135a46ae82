"""Runs a compiled model that carries state, step by step: steps.py LIBRARY HEADER INPUTS.npz OUTPUTS.npz SIZES. Only the
standard library is used. The library exports NAME_call (ingot compile --caller), NAME_reset and has NAME.h. Inputs and outputs
are named STEP/NAME; SIZES is a JSON object: which axis of which input a symbol is. The arena is full of rubbish before the
first reset. After the last step, `full` tells the status of one more; then the model is reset and the first three steps run
again, as "again0" to "again2".
"""
import ctypes
import json
import re
import struct
import sys

from lib import npy


def macros(path):
    with open(path, encoding="utf-8") as f:
        return dict(re.findall(r"#define \w+?_((?:ARENA|INPUTS|OUTPUTS|INPUT\d|OUTPUT\d|SIZE\d)\w*) (.*)", f.read()))


def aligned(n):
    raw = ctypes.create_string_buffer(n + 64)
    at = ctypes.addressof(raw)
    return raw, at + -at % 64


def text(macro):
    return json.loads(macro.split(" /*")[0])


class Model:
    def __init__(self, library, header, sizes):
        m = self.m = macros(header)
        self.lib, self.sizes = ctypes.CDLL(library), sizes
        n = int(m["ARENA_BYTES"])
        self.keep, self.arena = aligned(n)
        ctypes.memset(self.arena, 0xA5, n)
        self.ins = [text(m[f"INPUT{i}_NAME"]) for i in range(int(m["INPUTS"]))]
        self.outs = [(text(m[f"OUTPUT{i}_NAME"]), json.loads(m[f"OUTPUT{i}_TYPE"]), json.loads("[" + m[f"OUTPUT{i}_SHAPE"][1:-1] + "]"))
                     for i in range(int(m["OUTPUTS"]))]
        self.reset()

    def reset(self):
        self.lib.model_reset(ctypes.c_void_p(self.arena))

    def run(self, given):
        """Status, outputs by name."""
        size = (ctypes.c_int64 * 64)()
        for key, value in self.m.items():
            if re.fullmatch(r"SIZE\d+_NAME", key):
                name, axis = self.sizes[text(value)]
                size[int(key[4:-5])] = given[name].shape[axis]
        rooms = []

        def place(a):
            rooms.append(aligned(max(len(a), 1)))
            ctypes.memmove(rooms[-1][1], a, len(a))
            return rooms[-1][1]
        pack = [struct.pack(f"<{len(given[n].data)}{npy.KINDS[given[n].kind][1]}", *given[n].data) for n in self.ins]
        ins = (ctypes.c_void_p * 64)(*[place(p) for p in pack])
        outs = (ctypes.c_void_p * 64)(*[place(bytes(8 * npy.count(s))) for _, _, s in self.outs])
        shapes = [(ctypes.c_int64 * 16)(*s) for _, _, s in self.outs]
        pointers = (ctypes.c_void_p * 64)(*[ctypes.addressof(s) for s in shapes])
        status = self.lib.model_call(ctypes.c_void_p(self.arena), size, ctypes.c_uint64(0), ins, outs, pointers)
        found = {}
        for i, (name, kind, bound) in enumerate(self.outs):
            shape = tuple(shapes[i][:len(bound)])
            letter = npy.KINDS[kind][1]
            raw = ctypes.string_at(outs[i], npy.count(shape) * struct.calcsize(letter))
            found[name] = npy.Array(kind, shape, list(struct.unpack(f"<{npy.count(shape)}{letter}", raw)))
        return status, found


def main(library, header, inputs, outputs, sizes):
    model, steps, result = Model(library, header, json.loads(sizes)), {}, {}
    for key, raw in npy.load_npz_raw(inputs).items():
        step, name = key.split("/", 1)
        steps.setdefault(int(step), {})[name] = npy.decode(raw)
    for i in range(len(steps)):
        status, found = model.run(steps[i])
        if status:
            raise SystemExit(f"step {i}: status {status}")
        result.update({f"{i}/{k}": v for k, v in found.items()})
    status, _ = model.run(steps[len(steps) - 1])
    result["full"] = npy.Array("i64", (), [status])
    model.reset()
    for i in range(3):
        _, found = model.run(steps[i])
        result.update({f"again{i}/{k}": v for k, v in found.items()})
    npy.save_npz(outputs, result)


if __name__ == "__main__":
    main(*sys.argv[1:])
