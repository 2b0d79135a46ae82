"""Released packages: the archive of `make dist` builds and passes `make check`; lintian accepts the packages of `make deb`, and
what they install works."""
import glob
import os
import re
import shutil
from lib.core import ROOT, Skip, Test, must, need, want
from suite.build import version

LIMIT = 2400
MAIN = r"""
#include "net.h"
#include <ingot.h>
#include <stdio.h>
int main(void) {
  Ingot *m = ingot_new(NULL);
  printf("%d %s\n", NET_OUTPUT0_ELEMENTS, m ? net_target() : "");
  ingot_free(m);
  return 0;
}
"""
LISTS = """cmake_minimum_required(VERSION 3.13)
project(app C)
find_package(ingot REQUIRED)
ingot_add_model(net ${MODEL} DIMS batch=1)
add_executable(app main.c)
target_link_libraries(app PRIVATE net ingot::ingot)
"""


def unpacked(env):
    """The archive's folder. `make deb` packs it again, and waits for this one to be unpacked."""
    def make():
        where, name = env.scratch("packages", "dist"), f"ingot-{version()}"
        shutil.rmtree(where)
        os.makedirs(where)
        must(["make", "-C", ROOT, "dist"], "make dist", timeout=120)
        must(["tar", "xf", os.path.join(env.build, "dist", name + ".tar.gz"), "-C", where], "tar")
        return os.path.join(where, name)
    return env.once("the archive", make)


def dist(env):
    where = unpacked(env)
    out = must(["make", "-C", where, "check"], "make check in the archive", timeout=LIMIT, merge=True)
    want(re.search(r"^[1-9]\d* passed, 0 failed, ", out, re.M), f"make check: {out[-300:]}")
    shutil.rmtree(where)


def deb(env):
    for tool, package in (("dpkg-buildpackage", "dpkg-dev"), ("dh", "debhelper"), ("lintian", "lintian")):
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed: Debian has it in {package}")
    unpacked(env)
    must(["make", "-C", ROOT, "deb"], "make deb", timeout=LIMIT, env={"DEB_BUILD_OPTIONS": "nocheck"})
    found = sorted(glob.glob(os.path.join(env.build, "deb", "*.deb")))
    names = {os.path.basename(p).split("_")[0] for p in found}
    want({"ingot", "libingot0", "libingot-dev"} <= names, f"packages: {names}")
    changes, = glob.glob(os.path.join(env.build, "deb", "*.changes"))
    said = must(["lintian", "--fail-on", "error,warning", "--allow-root", changes], "lintian", timeout=600, merge=True)
    want(not said.strip(), f"lintian: {said}")
    top = env.scratch("packages", "root")
    shutil.rmtree(top)
    for path in found:
        if "dbgsym" not in path:
            must(["dpkg-deb", "-x", path, top], "dpkg-deb")
    want(version() in must([os.path.join(top, "usr", "bin", "ingot"), "--version"], "the program"), "another version")
    for name in ("man/man1/ingot.1.gz", "bash-completion/completions/ingot", "zsh/vendor-completions/_ingot", "fish/vendor_completions.d/ingot.fish", "doc/ingot/copyright"):
        want(os.path.getsize(os.path.join(top, "usr", "share", name)), f"{name} is empty")
    need("cmake")
    for name, text in (("main.c", MAIN), ("CMakeLists.txt", LISTS)):
        with open(os.path.join(top, name), "w") as f:
            f.write(text)
    must(["cmake", "-S", ".", "-B", "app", f"-DCMAKE_PREFIX_PATH={top}/usr", f"-DMODEL={ROOT}/models/digits.onnx"], "cmake", cwd=top, merge=True)
    must(["cmake", "--build", "app"], "cmake --build", cwd=top, merge=True)
    want(must(["app/app"], "the program of a user", cwd=top) == "10 scalar\n", "the program of a user")


def tests(env):
    return [Test("heavy/packages/dist", lambda: dist(env), cost=200), Test("heavy/packages/deb", lambda: deb(env), cost=200)]
