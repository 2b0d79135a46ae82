"""A network in a user's project: the CMake package of an installation, `ingot export` for every kind, the C++ header.

Boards are Cortex-M4 in qemu; test/stubs replaces the headers of Zephyr, ESP-IDF and Arduino.
"""
import json
import os
import re
import shutil
import struct
from lib import cpu, npy
from lib.core import ROOT, Fail, Test, explain, need, run, tail, want
from suite import build

DIGITS = os.path.join(ROOT, "models", "digits.onnx")
STUBS = os.path.join(ROOT, "test", "stubs")
WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
ARM = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-ffreestanding", "-ffp-contract=off"]

OPEN = """graph sym n in 1..8 (%a "a": f32[n,4], %h "h": f32[4]) {
  %s: f32[4] = reduce_sum(%a) {axes = [0], keep = 0}
  %y: f32[4] = add(%s, %h)
  %z: f32[n,4] = add(%a, %h)
  return %z "z", %y "y"
}
"""

CPP = r"""
#include "net.hpp"
#include "open.hpp"
#include <cstdio>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif
int main() {
  std::array<float, NET_INPUT0_ELEMENTS> image{};
  std::vector<float> a(NET_OUTPUT0_ELEMENTS), b(NET_OUTPUT0_ELEMENTS);
  float plain[NET_OUTPUT0_ELEMENTS];
  for (std::size_t i = 0; i < image.size(); i++) image[i] = float(i % 17) / 16;
  net::Net one, two;
  if (!one.selftest()) return 1;
  one.run(image, a);
  two.run(image, plain);
  net::Net moved = std::move(one);
  moved.run({image.data(), image.size()}, b);
#if __cplusplus >= 202002L
  moved.run(std::span<const float>(image), std::span<float>(b));
#endif
  for (std::size_t i = 0; i < a.size(); i++)
    if (a[i] != b[i] || a[i] != plain[i]) return 2;
  std::vector<float> small(63);
  if (moved.try_run(small, a) != -1) return 3;
  bool thrown = false;
  try {
    moved.run(small, a);
  } catch (const std::invalid_argument &e) {
    thrown = std::string(e.what()) == "net: image has too few elements";
  }
  if (!thrown) return 4;
  open_::Net first, second; // states of their own
  std::vector<float> x(8, 1), z(8);
  first.run(2, x, z);
  first.run(2, x, z);
  float again = z[0];
  second.run(2, x, z);
  if (again != 3 || z[0] != 1) return 5;
  first.reset();
  first.run(2, x, z);
  if (z[0] != 1 || first.try_run(3, x, z) != -1 || first.try_run(9, x, z) != -1) return 6;
  std::puts(net::Net::target());
}
"""

PACKAGE = """cmake_minimum_required(VERSION 3.13)
project(app C CXX)
find_package(ingot REQUIRED)
ingot_add_model(net ${MODEL} DIMS batch=1 MARCH sse2 THREADS 2 CPP)
ingot_add_model(plain ${MODEL} DIMS batch=1 NAME other OPTIONS --no-selftest)
add_executable(app main.cpp)
set_target_properties(app PROPERTIES CXX_STANDARD 17)
target_link_libraries(app PRIVATE net plain)
add_executable(library library.c)
target_link_libraries(library PRIVATE ingot::ingot)
"""
PACKAGE_MAIN = r"""
#include "net.hpp"
#include "other.h"
#include <cmath>
#include <cstdio>
#include <vector>
int main() {
  std::vector<float> x(64, 0.5f), y(10), z(10);
  alignas(64) static unsigned char arena[OTHER_ARENA_BYTES];
  net::Net net(2);
  net.run(x, y);
  if (other_run(arena, x.data(), z.data()) || OTHER_SELFTEST || std::fabs(y[0] - z[0]) > 1e-5f) return 1;
  std::printf("%s\n", net.target());
}
"""


class Work:
    def __init__(self, env, name, *tools):
        env.need_ingot()
        for tool in tools:
            need(tool)
        self.env, self.dir = env, env.scratch("projects", name)
        shutil.rmtree(self.dir)
        os.makedirs(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)

    def run(self, *cmd, code=0, text=None, env=None, cwd="."):
        got = run(list(cmd), 240, cwd=self.path(cwd), env=env)
        if got.rc != code or (text and text not in got.text()):
            raise Fail(f"{' '.join(cmd)}: {explain(got)}, expected {code} {text or ''}: {tail(got.out.decode('utf-8', 'replace') + got.text(), 12)}")
        return got.out.decode()

    def export(self, kind, *args):
        self.run(self.env.ingot, "export", DIGITS, "-d", "batch=1", "--project", kind, "-o", kind, *args)
        os.symlink(kind, self.path("digits"))  # names come from the model, not from the folder

    def zeros(self):
        """The network's result for zeros."""
        npy.save_npz(self.path("in.npz"), {"image": npy.Array("f32", (1, 1, 8, 8), [0.0] * 64)})
        self.run(self.env.ingot, "run", DIGITS, "-d", "batch=1", "--inputs", "in.npz", "-o", "out.npz", "--march", "scalar")
        return npy.load_npz(self.path("out.npz"))["probability"].data


def cpp(w):
    w.write("open.ing", OPEN)
    w.run(w.env.ingot, "compile", DIGITS, "-d", "batch=1", "--cpp", "-o", "net.c")
    w.run(w.env.ingot, "compile", "open.ing", "--state", "h=y", "--cpp", "-o", "open.c")
    w.write("main.cpp", CPP)
    w.run("cc", "-std=c99", "-O1", "-c", "net.c", "open.c")
    for compiler in ("g++", "clang++"):
        for standard in ("c++17", "c++20") if shutil.which(compiler) else ():
            w.run(compiler, f"-std={standard}", *WARN, "-fsanitize=address,undefined", "main.cpp", "net.o", "open.o", "-o", "main")
            want(w.run("./main") == "scalar\n", "the target")
    w.run("g++", "-std=c++17", *WARN, "-fno-exceptions", "-x", "c++", "-fsyntax-only", "net.hpp")
    w.run(w.env.ingot, "compile", DIGITS, "-d", "batch=1", "--cpp", code=2, text="--cpp needs --output")
    w.run(w.env.ingot, "compile", DIGITS, os.path.join(ROOT, "test", "docs", "tour.onnx"), "-d", "batch=1", "--cpp", "-o", "two.c", code=3, text="--cpp")


def package(w):
    """find_package(ingot) of an installation."""
    top = build.installed(w.env)
    w.write("CMakeLists.txt", PACKAGE)
    w.write("main.cpp", PACKAGE_MAIN)
    w.write("library.c", build.USER)
    shutil.copy(DIGITS, w.path("digits.onnx"))
    w.run("cmake", "-S", ".", "-B", "b", f"-DCMAKE_PREFIX_PATH={top}", f"-DMODEL={w.path('digits.onnx')}")
    w.run("cmake", "--build", "b")
    want(w.run("b/app") == "sse2\n", "the program of a project")
    w.run("b/library")
    before = os.path.getmtime(w.path("b/net.ingot/net.c"))
    os.utime(w.path("digits.onnx"), (before + 5, before + 5))
    w.run("cmake", "--build", "b", "--target", "net")
    want(os.path.getmtime(w.path("b/net.ingot/net.c")) != before, "a model that has changed is not compiled again")
    w.run("cmake", "-S", ".", "-B", "c", f"-DCMAKE_PREFIX_PATH={top}", "-DMODEL=", code=1, text="no model is named")


def snippet(w, language, to):
    """Writes a block of docs/deploy.md as a file next to a model and a program; ingot is first in the search path."""
    with open(os.path.join(ROOT, "docs", "deploy.md")) as f:
        w.write(to, re.search(rf"^```{language}\n(.*?)^```$", f.read(), re.M | re.S)[1])
    shutil.copy(DIGITS, w.path("model.onnx"))
    w.write("main.c", '#include "net.h"\n#include <stdio.h>\n_Alignas(64) static unsigned char arena[NET_ARENA_BYTES];\nint main(void) {\n'
            "  static float x[NET_INPUT0_ELEMENTS], y[NET_OUTPUT0_ELEMENTS];\n  if (net_run(arena, x, y)) return 1;\n"
            '  for (int i = 0; i < 10; i++) printf("%.3f ", (double)y[i]);\n  return 0;\n}\n')
    os.makedirs(w.path("bin"))
    os.symlink(w.env.ingot, w.path("bin/ingot"))
    return {"PATH": w.path("bin") + ":" + os.environ["PATH"]}


def again(w, env, folder, *command):
    """A changed model, and only that, is compiled again."""
    net = w.path(os.path.join(folder, "net.c"))
    before = os.path.getmtime(net)
    w.run(*command, env=env)
    want(os.path.getmtime(net) == before, "the model is compiled again for nothing")
    os.utime(w.path("model.onnx"), (before + 5, before + 5))
    w.run(*command, env=env)
    want(os.path.getmtime(net) != before, "a model that has changed is not compiled again")


def plain_make(w):
    env = snippet(w, "make", "Makefile")
    w.run("make", env=env)
    if cpu.can_run("avx2"):
        want(w.run("./app").split() == [f"{x:.3f}" for x in w.zeros()], "the program prints something else")
    again(w, env, ".", "make")


def meson(w):
    env = snippet(w, "meson", "meson.build")
    w.run("meson", "setup", "b", env=env)
    w.run("ninja", "-C", "b", env=env)
    want(w.run("b/app").split() == [f"{x:.3f}" for x in w.zeros()], "the program prints something else")
    again(w, env, "b", "ninja", "-C", "b")


def export_cmake(w):
    w.export("cmake")
    w.run("cmake", "-S", "digits", "-B", "b")
    w.run("cmake", "--build", "b")
    w.run("ctest", cwd="b")
    want(w.run("b/digits_hello").split() == [f"{x:g}" for x in w.zeros()], "the example prints something else")
    with open(w.path("digits/README.md")) as f:
        want("| arena, in RAM | 6144 |" in f.read(), "the README lacks sizes")
    w.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.10)\nproject(user C)\nadd_subdirectory(digits)\nadd_executable(user user.c)\n"
            "target_link_libraries(user PRIVATE digits)\n")
    w.write("user.c", '#include "digits.h"\nint main(void) { return digits_why(1) == 0; }\n')
    w.run("cmake", "-S", ".", "-B", "c")
    w.run("cmake", "--build", "c")
    w.run("c/user")


def export_make(w):
    """A library and a program, from any folder, with weights in a separate file, and with threads."""
    w.export("make")
    w.run("make", "-C", "digits")
    want(w.run("digits/build/digits_hello").split() == [f"{x:g}" for x in w.zeros()], "the example prints something else")
    os.makedirs(w.path("bin"))
    for n, more in enumerate((["--weights", "file"], ["--threads", "2", "--march", "sse2"])):
        w.run(w.env.ingot, "export", DIGITS, "-d", "batch=1", "--project", "make", "-o", "make", *more)
        w.run("make", "-s", "-f", "../digits/Makefile", f"BUILD=out{n}", "check", cwd="bin")
    want(os.path.exists(w.path("bin/out1/libdigits.a")) and not os.path.exists(w.path("bin/build")), "the library is not where it was asked for")


def named(w):
    """Names come from the model, a file or a folder, unless --name is given."""
    for model, name in (("resnet-18.v2.onnx", "resnet_18_v2"), ("3d.onnx", "m3d"), ("_.onnx", "model"), ("plain", "plain"), ("Qwen2.5-0.5B", "Qwen2_5_0_5B")):
        shutil.copy(DIGITS, w.path(model))
        w.run(w.env.ingot, "export", model, "-d", "batch=1", "--project", "cmake", "-o", "x-" + name)
        want(os.path.exists(w.path(f"x-{name}/src/{name}.c")), f"{model}: {os.listdir(w.path('x-' + name + '/src'))}")


def on_board(w, objects, start):
    """Links with the board files and runs: the first ten results equal those of ingot to the bit."""
    board = os.path.join(STUBS, "board")
    w.run("arm-none-eabi-gcc", "-std=c99", "-Os", *ARM, *WARN, f"-I{board}", f"-DSTART={start}", "-nostdlib", "-T", os.path.join(board, "flash.ld"), "-o", "board.elf",
          os.path.join(board, "board.c"), *objects, "-lgcc")
    got = run(["qemu-system-arm", "-M", "mps2-an386", "-nographic", "-semihosting", "-kernel", w.path("board.elf")], 60)
    # semihosting prints to stderr
    seen = (got.out + got.err).decode().split()
    want(got.rc == 0 and seen == [struct.pack(">f", x).hex() for x in w.zeros()], f"on the board: {explain(got)}: {seen}")


def cross(w, source, *args):
    board = os.path.join(STUBS, "board")
    w.run("cmake", "-S", source, "-B", "b", "-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_C_COMPILER=arm-none-eabi-gcc", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
          f"-DCMAKE_C_FLAGS=-Os -std=c11 {' '.join(ARM)} -isystem {board}", *args, env={"ZEPHYR_BASE": os.path.join(STUBS, "zephyr"), "IDF_PATH": os.path.join(STUBS, "esp-idf")})
    w.run("cmake", "--build", "b")


def export_zephyr(w):
    w.export("zephyr")
    cross(w, "digits/samples/hello", f"-DZephyr_DIR={STUBS}/zephyr")
    on_board(w, ["b/libapp.a", "b/module/libdigits.a"], "main")


def export_esp(w):
    w.export("esp-idf")
    cross(w, "digits/examples/hello")
    w.write("start.c", "void app_main(void);\nint board_main(void);\nint board_main(void) {\n  app_main();\n  return 0;\n}\n")
    on_board(w, ["start.c", "b/main/libmain.a", "b/component/libdigits.a"], "board_main")


def export_platformio(w):
    w.export("platformio")
    with open(w.path("digits/library.json")) as f:
        want(json.load(f)["name"] == "digits", "library.json")
    w.run("arm-none-eabi-gcc", "-std=c11", "-Os", *ARM, "-Idigits/include", "-isystem", os.path.join(STUBS, "board"), "-c", "digits/src/digits.c", "digits/examples/hello/src/main.c")
    on_board(w, ["digits.o", "main.o"], "main")


def export_arduino(w):
    w.export("arduino")
    with open(w.path("digits/library.properties")) as f:
        keys = dict(line.split("=", 1) for line in f.read().splitlines())
    want({"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"} <= set(keys) and keys["includes"] == "digits.h",
         f"library.properties: {keys}")
    flags = [*ARM, "-Os", "-Idigits/src"]
    w.run("arm-none-eabi-gcc", *flags, "-std=gnu11", "-c", "digits/src/digits.c")
    w.run("arm-none-eabi-g++", *flags, "-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-I", os.path.join(STUBS, "arduino"), "-include", "Arduino.h", "-x", "c++", "-c",
          "digits/examples/hello/hello.ino", "-o", "hello.o")
    on_board(w, ["hello.o", "digits.o"], "sketch_main")


RUST = r"""use open::{Error, Net};

fn message(got: Result<(), Error>) -> String {
    got.unwrap_err().to_string()
}

fn main() {
    let (mut one, mut two) = (Net::new(), Net::new());
    let (x, mut z) = ([1f32; 8], [0f32; 8]);
    one.run(2, &x, &mut z).unwrap();
    one.run(2, &x, &mut z).unwrap();
    assert_eq!(z[0], 3.0); // the sums of the run before
    two.run(2, &x, &mut z).unwrap();
    assert_eq!(z[0], 1.0); // a state of its own
    one.reset();
    one.run(2, &x, &mut z).unwrap();
    assert_eq!(z[0], 1.0);
    assert_eq!(message(one.run(3, &x, &mut z)), "a: 8 elements, expected 12");
    assert_eq!(message(one.run(2, &x, &mut z[..7])), "z: 7 elements, expected 8");
    assert_eq!(message(one.run(9, &[0f32; 36], &mut [0f32; 36])), "n: 9, expected 1 to 8");
    assert_eq!(message(one.run(-1, &x, &mut z)), "n: -1, expected 1 to 8");
}
"""


def rust_wrapper(w):
    """Symbolic sizes, and state; the wrapper refuses a short slice or a size out of bounds."""
    w.write("open.ing", OPEN)
    w.run(w.env.ingot, "export", "open.ing", "--state", "h=y", "--project", "rust", "-o", "open")
    w.write("open/examples/user.rs", RUST)
    w.run("cargo", "run", "--offline", "--quiet", "--example", "user", cwd="open", env={"CARGO_TARGET_DIR": w.path("target"), "CARGO_NET_OFFLINE": "true"})


def export_rust(w):
    w.export("rust")
    home = {"CARGO_TARGET_DIR": w.path("target"), "CARGO_NET_OFFLINE": "true"}
    out = w.run("cargo", "run", "--offline", "--quiet", "--example", "hello", cwd="digits", env=home)
    near = [abs(float(a) - b) for a, b in zip(out.split(), w.zeros())]
    want(len(near) == 10 and max(near) < 1e-7, f"the example prints {out}")


def strangers(w):
    """Files that no export wrote stay, and the message names them; an export replaces files of an earlier one."""
    for kind, file in (("cmake", "README.md"), ("cmake", "src/d.c"), ("rust", "src/lib.rs"), ("zephyr", "CMakeLists.txt"), ("arduino", "README.md")):
        folder = f"{kind}-{file.replace('/', '-')}"
        os.makedirs(os.path.dirname(w.path(f"{folder}/{file}")))
        w.write(f"{folder}/{file}", "mine\n")
        w.run(w.env.ingot, "export", DIGITS, "-d", "batch=1", "--project", kind, "--name", "d", "-o", folder, code=2, text=f"{folder}/{file} exists and was not written by ingot export")
        left = [os.path.join(top, f) for top, _, files in os.walk(w.path(folder)) for f in files]
        with open(w.path(f"{folder}/{file}")) as f:
            want(left == [w.path(f"{folder}/{file}")] and f.read() == "mine\n", f"{kind}: {left}")
    # before any work: the model is not read
    w.run(w.env.ingot, "export", "no-such.onnx", "--project", "cmake", "--name", "d", "-o", "cmake-README.md", code=2, text="was not written by ingot export")
    w.write("notes.txt", "mine\n")
    for kind, name in (("cmake", "d"), ("cmake", "d"), ("zephyr", "e"), ("cmake", "d")):
        w.run(w.env.ingot, "export", DIGITS, "-d", "batch=1", "--project", kind, "--name", name, "-o", ".")
    with open(w.path("CMakeLists.txt")) as f:
        want("add_library(d " in f.read(), "the last export is another")
    with open(w.path("notes.txt")) as f:
        want(f.read() == "mine\n", "a file that is none of a project")
    for name in ("README.md", ".ingot-export"):  # the target of a link is a user's file too
        os.mkdir(w.path("soft-" + name))
        os.symlink("../notes.txt", w.path(f"soft-{name}/{name}"))
        w.run(w.env.ingot, "export", DIGITS, "-d", "batch=1", "--project", "cmake", "--name", "d", "-o", "soft-" + name, code=2, text=f"soft-{name}/{name} exists")
    with open(w.path("notes.txt")) as f:
        want(f.read() == "mine\n", "a file behind a link")


def reserved(w):
    """Names that a kind of project reserves are refused, with an alternative, before the model is read; the alternative is
    accepted."""
    for kind, names in (("cmake", "test all help install clean string"), ("rust", "match std self crate test m"), ("zephyr", "app test time"), ("arduino", "Arduino math"),
                        ("platformio", "string"), ("esp-idf", "main flash stdio")):
        for name in names.split():
            w.run(w.env.ingot, "export", "no-such.onnx", "--project", kind, "-o", "d/" + name, "--name", name, code=2, text=f"'{name}' cannot be the name of a project for {kind}")
    want(not os.path.exists(w.path("d")), "a folder is left")
    w.run(w.env.ingot, "export", DIGITS, "-d", "batch=1", "--project", "zephyr", "--name", "no", "-o", "no")
    with open(w.path("no/zephyr/module.yml")) as f:
        want('name: "no"\n' in f.read(), "YAML takes the name for something else")
    with open(w.path("no/Kconfig")) as f:
        want(f.read().startswith("config INGOT_NO\n"), "the option has a name that others may have")
    for kind, name in (("rust", "no"), ("rust", "match_net"), ("cmake", "test_net")):
        w.run(w.env.ingot, "export", DIGITS, "-d", "batch=1", "--project", kind, "-o", f"{kind}-{name}", "--name", name)


def spaces(w):
    """Namespaces are never words that C headers or compiler macros use."""
    w.write("one.ing", 'graph (%x "x": f32[4]) {\n  %y: f32[4] = neg(%x)\n  return %y "y"\n}\n')
    names = "clock time linux unix index remove read write log exp signal class match y1 net".split()
    for name in names:
        w.run(w.env.ingot, "compile", "one.ing", "--cpp", "--no-selftest", "-o", name + ".c", "--name", name)
    w.write("all.cpp", "#include <cmath>\n#include <csignal>\n#include <cstdio>\n#include <cstdlib>\n#include <ctime>\n#include <unistd.h>\n"
            + "".join(f'#include "./{name}.hpp"\n' for name in names) + "int main() {\n  net::Net a;\n  clock_::Net b;\n  match::Net c;\n  (void)a, (void)b, (void)c;\n}\n")
    for standard in ("gnu++17", "gnu++20"):
        w.run("g++", f"-std={standard}", *WARN, "-fsyntax-only", "all.cpp")


def refused(w):
    for code, words, args in ((2, "--project is missing", ["-o", "d"]), (2, "expected one of cmake, make, zephyr", ["--project", "bazel", "-o", "d"]), (2, "--output is missing", ["--project", "cmake"]),
                              (2, "did you mean 'cmake'", ["--project", "cmak", "-o", "d"]), (3, "--threads", ["--project", "zephyr", "--threads", "2", "-o", "d"]),
                              (3, "--weights", ["--project", "rust", "--weights", "file", "-o", "d"])):
        w.run(w.env.ingot, "export", DIGITS, "-d", "batch=1", *args, code=code, text=words)
    want(not os.path.exists(w.path("d")), "a folder is left")


def tests(env):
    arm = ("arm-none-eabi-gcc", "qemu-system-arm")
    rows = [("cpp", cpp, ("cc", "g++"), 8), ("package", package, ("cmake", "g++"), 10), ("make", plain_make, ("cc",), 2), ("meson", meson, ("meson", "ninja", "cc"), 4), ("cmake", export_cmake, ("cmake",), 5), ("export_make", export_make, ("make", "cc"), 3), ("named", named, (), 2), ("zephyr", export_zephyr, ("cmake", *arm), 4),
            ("esp-idf", export_esp, ("cmake", *arm), 4), ("platformio", export_platformio, arm, 2), ("arduino", export_arduino, (*arm, "arm-none-eabi-g++"), 2),
            ("rust", export_rust, ("cargo", "cc"), 8), ("wrapper", rust_wrapper, ("cargo", "cc"), 5),
            ("strangers", strangers, (), 2), ("reserved", reserved, (), 2), ("spaces", spaces, ("g++",), 4), ("refused", refused, (), 1)]
    return [Test(f"projects/{name}", lambda name=name, fn=fn, tools=tools: fn(Work(env, name, *tools)), cost=cost) for name, fn, tools, cost in rows]
