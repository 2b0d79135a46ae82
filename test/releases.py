"""The test data of other releases of onnx: releases.py [VERSION ...]. For each: how many cases pass, are refused, are wrong.

Runs with the Python of build/venv. Wheels are kept in build/onnx. Up to 1.22 a wheel holds its data, which `ingot verify` judges; from
1.23 on the runner makes them in memory: then it is that runner, over python/ingot/backend.py. A case that does not pass, and that the
release in build/venv has with another model or other data, was corrected since. Exit 1 if anything is wrong.
"""
import collections
import concurrent.futures
import fnmatch
import glob
import os
import re
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.path.join(ROOT, "build", "onnx")
VERSIONS = ("1.13.1", "1.15.0", "1.17.0", "1.19.1", "1.23.2")
INGOT = os.environ.get("INGOT", os.path.join(ROOT, "build", "ingot"))
ENGINE = os.environ.get("ENGINE", "interp")


def fetch(version):
    """Folder of the unpacked wheel."""
    out = os.path.join(HOME, version)
    if os.path.exists(os.path.join(out, "onnx", "__init__.py")):
        return out
    wheels = os.path.join(HOME, "dl")
    got = glob.glob(os.path.join(wheels, f"onnx-{version}-*.whl"))
    if not got:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
                        "-d", wheels, f"onnx=={version}"], check=True)
        got = glob.glob(os.path.join(wheels, f"onnx-{version}-*.whl"))
    with zipfile.ZipFile(got[0]) as z:
        z.extractall(out)
    return out


def excuses():
    with open(os.path.join(ROOT, "test", "onnx", "list.txt")) as f:
        return [line.split(None, 2)[:2] for line in f if line.strip() and not line.startswith("#")]


def verify(model, table):
    """pass, refused or wrong, and what is said about it."""
    name = os.path.basename(os.path.dirname(model))
    args = ["--rtol", "1e-3", "--atol", "1e-7"]
    for pattern, rule in table:
        if fnmatch.fnmatch(name, pattern):
            m = re.fullmatch(r"rtol=(\S+),atol=(\S+)", rule)
            args = ["--rtol", m[1] if m else "1e38", "--atol", m[2] if m else "1e38"]
    for data in sorted(glob.glob(os.path.join(os.path.dirname(model), "test_data_set_*"))):
        try:
            got = subprocess.run([INGOT, "verify", model, "--data", data, "--engine", ENGINE, "--quiet", *args], capture_output=True,
                                 timeout=120)
        except subprocess.TimeoutExpired:
            return name, "wrong", "too slow"
        text = (got.stderr + got.stdout).decode("utf-8", "replace").strip().replace(model, "").replace("\n", " ")
        if got.returncode == 3:
            return name, "refused", text
        if got.returncode:
            return name, "wrong", f"exit {got.returncode}: {text}"
    return name, "pass", ""


def corrected(model):
    """Does the release that is installed have this case with other nodes or data?"""
    import onnx
    name = os.path.relpath(model, model[:model.index(os.sep + "data" + os.sep) + 6])
    now = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", name)
    if not os.path.exists(now):
        return False
    if onnx.load(now).graph.node != onnx.load(model).graph.node:
        return True
    for path in glob.glob(os.path.join(os.path.dirname(model), "test_data_set_*", "*.pb")):
        other = os.path.join(os.path.dirname(now), os.path.relpath(path, os.path.dirname(model)))
        with open(path, "rb") as x, open(other, "rb") as y:
            if x.read() != y.read():
                return True
    return False


def old(version, folder):
    models = sorted(glob.glob(os.path.join(folder, "onnx", "backend", "test", "data", "*", "*", "model.onnx")))
    table, count, refused, wrong = excuses(), collections.Counter(), collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for model, (name, kind, text) in zip(models, pool.map(lambda m: verify(m, table), models)):
            if kind == "wrong" and corrected(model):
                kind = "corrected"
            count[kind] += 1
            if kind == "refused":
                m = re.search(r"operator (\w+) of", text)
                refused[m[1] if m else text[:80]] += 1
            elif kind == "wrong":
                wrong.append(f"{name}: {text[:300]}")
    names = ", ".join(f"{n} {k}" for n, k in refused.items())
    print(f"onnx {version}, engine {ENGINE}: {count['pass']} of {len(models)} pass, {count['refused']} refused ({names}), "
          f"{count['corrected']} corrected since, {count['wrong']} wrong")
    for line in wrong:
        print("  " + line)
    return len(wrong)


def new(version, folder):
    got = subprocess.run([sys.executable, "-W", "ignore", os.path.join(ROOT, "test", "backend.py"), "--engine", ENGINE],
                         env=os.environ | {"PYTHONPATH": folder}, capture_output=True)
    lines = got.stdout.decode().splitlines()
    print("\n".join([x for x in lines if x.startswith("wrong")] + lines[-1:]))
    return got.returncode


def main():
    bad = 0
    for version in sys.argv[1:] or VERSIONS:
        folder = fetch(version)
        bad += (new if tuple(map(int, version.split("."))) >= (1, 23) else old)(version, folder)
        sys.stdout.flush()
    sys.exit(bad != 0)


main()
