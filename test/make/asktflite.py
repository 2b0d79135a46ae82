"""Runs a model in the TensorFlow Lite interpreter: asktflite.py MODEL.tflite FOLDER.

It writes in.npz, random inputs, and out.npz, the outputs.
Exit code 3: the interpreter cannot run the model.
"""
import sys

import numpy as np
from tflitefile import ask, judge_of


def main(path, folder):
    with open(path, "rb") as f:
        data = f.read()
    judge = judge_of(data, kernels="built-in")
    try:
        judge.allocate_tensors()
    except RuntimeError as e:
        print(e)
        return 3
    rng = np.random.default_rng(1)
    inputs = [rng.random(d["shape"], dtype=np.float32) for d in judge.get_input_details()]
    results = ask(judge, inputs)
    np.savez(f"{folder}/in.npz", **{d["name"]: x for d, x in zip(judge.get_input_details(), inputs)})
    np.savez(f"{folder}/out.npz", **{d["name"]: x for d, x in zip(judge.get_output_details(), results)})
    return 0


sys.exit(main(*sys.argv[1:]))
