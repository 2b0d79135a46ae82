"""The wheel, installed in a separate folder: all official cases of onnx through its backend on engine c, with tcc and with the usual compiler.
The archive of sources makes the same wheel."""
import os
import shutil
import zipfile
from lib.core import ROOT, Fail, Test, must, need, run, tail, want
from suite.python import backend, make_wheel

LIMIT = 1800
PARTS = 4
# Each part: number of cases, those that test/onnx/list.txt or test/backend.py excuses, those that are refused (REFUSED, without IMAGES=1).
CASES = {"0/1": (1905, 15, 5), "0/4": (478, 4, 1), "1/4": (477, 5, 2), "2/4": (476, 3, 1), "3/4": (474, 3, 1)}
REFUSED = {"test_image_decoder_decode_" + name for name in ("jpeg2k_rgb", "jpeg_bgr", "jpeg_grayscale", "jpeg_rgb", "webp_rgb")}


def installed(env):
    def install():
        folder = env.scratch("wheel", "installed")
        shutil.rmtree(folder)
        must([env.need_python(), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-compile", "--target", folder, make_wheel(env)], "pip install")
        return folder
    return env.once("installed wheel", install)


def cases(env, compiler, part):
    """part: K/N."""
    need(compiler)
    got = run([env.need_python(), os.path.join(ROOT, "test", "backend.py"), "--engine", "c", "--part", part, "--package", installed(env)], LIMIT, cwd=env.scratch("wheel"),
              env={"CC": compiler, "INGOT_LIBRARY": ""})
    lines = got.out.decode("utf-8", "replace").strip().splitlines()
    if got.rc or got.timed_out:
        raise Fail("\n".join([x for x in lines if x.startswith("wrong")][:10]) or tail(got.text()))
    count, excused, refused = CASES[part]
    told = f": {count - excused - refused} of {count} pass, {excused} excused, {refused} refused, 0 wrong"
    want(lines[-1].endswith(told), f"{lines[-1]}, expected{told}")
    names = {x.split()[1].rstrip(":") for x in lines if x.startswith("refused ")}
    want(names <= REFUSED and len(names) == refused, f"refused: {sorted(names)}")
    print(f"{compiler} {part}: {lines[-1]}", flush=True)


def sources(env):
    """The archive of sources becomes a wheel with the same files, by pip, without a network."""
    folder = env.scratch("wheel", "sources")
    shutil.rmtree(folder)
    os.makedirs(folder)
    name = backend(env).build_sdist(folder)
    must([env.need_python(), "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-index", "--no-deps", "--no-build-isolation", "-w", folder, os.path.join(folder, name)], "pip wheel",
         timeout=LIMIT)
    made = [x for x in os.listdir(folder) if x.endswith(".whl")]

    def inside(path):
        with zipfile.ZipFile(path) as z:
            return z.namelist()
    want(made == [os.path.basename(make_wheel(env))] and inside(os.path.join(folder, made[0])) == inside(make_wheel(env)), f"another wheel: {made}")


def tests(env):
    rows = [("tcc", "0/1"), *(("cc", f"{k}/{PARTS}") for k in range(PARTS))]
    return [Test("heavy/wheel/sources", lambda: sources(env), cost=150)] + [Test(f"heavy/wheel/{compiler}-{part.replace('/', 'of')}", lambda c=compiler, p=part: cases(env, c, p), cost=100) for compiler, part in rows]
