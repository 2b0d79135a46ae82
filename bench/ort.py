"""Milliseconds of ONNX Runtime, one thread: bench/ort.py MODEL INPUTS.npz prints `LOAD RUN` (median of the runs of 1 s)."""
import statistics
import sys
import time

import numpy as np
import onnxruntime as ort

ort.set_default_logger_severity(3)
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
start = time.perf_counter()
s = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
load = time.perf_counter() - start
file = np.load(sys.argv[2])
inputs = {k[2:]: file[k] for k in file.files if k.startswith("0/")}
times = []
while sum(times) < 1 or len(times) < 3:
    start = time.perf_counter()
    s.run(None, inputs)
    times.append(time.perf_counter() - start)
print(1000 * load, 1000 * statistics.median(times))
