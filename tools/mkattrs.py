"""Writes src/front/onnx/onnx_attrs.def: the attributes of the operators of onnx_ops.def, as ONNX and ONNX Runtime know them.

    build/venv/bin/python tools/mkattrs.py [--check]

An attribute that any version of an operator has counts; --check compares instead of writing.
"""
import os
import re
import sys
import textwrap
from onnx import defs
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "front", "onnx")
OUT = os.path.join(FOLDER, "onnx_attrs.def")
KEYS = {"": "ai", "ai.onnx.ml": "ml", "ai.onnx.preview": "preview", "ai.onnx.preview.training": "training",
        "com.microsoft": "ms"}  # as in src/front/onnx/onnx_op_table.c
LATER = {("ai", "SwiGLU"): {"alpha"},  # added in an opset that the packages lack
         ("ms", "SimplifiedLayerNormalization"): {"axis", "epsilon", "stash_type"}}  # has a schema in ai only
HEAD = """/* Attributes of operators: OA(domain, name, attributes). Written by tools/mkattrs.py from the
 * schemas of ONNX and ONNX Runtime, for all versions of an operator. Sorted by strcmp. Operators
 * without attributes are not listed. */
"""


def rows():
    known = dict(LATER)
    with open(os.path.join(FOLDER, "onnx_ops.def"), encoding="ascii") as f:
        built = set(re.findall(r"^ON\((\w+), *(\w+),", f.read(), re.M))
    for schema in [*defs.get_all_schemas_with_history(), *get_all_operator_schema()]:
        if schema.domain in KEYS:
            known.setdefault((KEYS[schema.domain], schema.name), set()).update(schema.attributes)
    if built - known.keys():
        sys.exit(f"no schema: {sorted(built - known.keys())}")
    for (domain, name), attrs in sorted((k, v) for k, v in known.items() if k in built and v):
        lines = textwrap.wrap(" ".join(sorted(attrs)), 90)
        parts = [f'"{" " if not i else ""}{line} "' for i, line in enumerate(lines)]
        head = f"OA({domain}, {name}, "
        one = head + parts[0] + ")"
        yield one if len(parts) == 1 and len(one) <= 100 else head.rstrip() + "\n   " + "\n   ".join(parts) + ")"


def main():
    text = HEAD + "\n".join(rows()) + "\n"
    if "--check" in sys.argv:
        with open(OUT, encoding="ascii") as f:
            if f.read() != text:
                sys.exit("src/front/onnx/onnx_attrs.def is not what tools/mkattrs.py writes")
        return
    with open(OUT, "w", encoding="ascii") as f:
        f.write(text)


main()
