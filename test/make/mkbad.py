"""Writes bad and hostile model files with the expected exit codes: mkbad.py OUT writes OUT/NAME/bad.onnx and manifest.json.

Runs with the Python of build/venv.
The files are the same on every run.
test/bad/*.py has the cases.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from bad import cost, data, flow, graph, kit, ops, wire  # noqa: E402


def main():
    out = sys.argv[1]
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    b = kit.Bad(out)
    for part in (wire, graph, data, ops, flow, cost):
        part.cases(b)
    b.close()
    print(len(b.rows), "files")


main()
