"""--tune, --tuned and --choices: every choice that lowering offers computes the same, a table of choices is used, a malformed
file is refused or ignored, and nothing is measured twice."""
import os
import random
import shutil

from lib import cpu
from lib.core import Fail, Test, explain, run, tail

HEAD = "ingot tune 1\nmachine\t{}\tsome CPU\tsome compiler\t0\n"


def const(rand, name, dim):
    n = 1
    for d in dim:
        n *= d
    values = ", ".join(f"{rand.randrange(-64, 65) / 256:g}" for _ in range(n))
    return f"  %{name}: f32[{','.join(map(str, dim))}] = const {{{values}}}\n"


def conv(out, x, k, shape, group=1, stride=1, pad=0):
    return (f"  %{out}: f32[{','.join(map(str, shape))}] = conv(%{x}, %{k}) {{group={group}, stride=[{stride},{stride}], "
            f"dilation=[1,1], pad_lo=[{pad},{pad}], pad_hi=[{pad},{pad}]}}\n")


def network(path):
    """All families: Winograd, products over blocks, few channels, depthwise, a pool, a matrix product, a sum."""
    rand = random.Random(5)
    text = "graph (%x: f32[1,3,19,19]) {\n"
    text += const(rand, "k1", [16, 3, 3, 3]) + conv("a", "x", "k1", [1, 16, 9, 9], stride=2)
    text += const(rand, "k2", [32, 16, 3, 3]) + conv("b", "a", "k2", [1, 32, 9, 9], pad=1)
    text += "  %zero: f32[] = const {0}\n  %c: f32[1,32,9,9] = max(%b, %zero)\n"
    text += const(rand, "k3", [32, 1, 3, 3]) + conv("d", "c", "k3", [1, 32, 9, 9], group=32, pad=1)
    text += const(rand, "k4", [80, 32, 1, 1]) + conv("e", "d", "k4", [1, 80, 9, 9])
    text += const(rand, "k5", [32, 80, 1, 1]) + conv("f", "e", "k5", [1, 32, 9, 9])
    text += "  %g: f32[1,32,9,9] = add(%f, %c)\n"
    text += "  %h: f32[1,32,4,4] = pool_max(%g) {window=[3,3], stride=[2,2], dilation=[1,1], pad_lo=[0,0], pad_hi=[0,0]}\n"
    text += "  %i: f32[32] = reduce_sum(%h) {axes=[0,2,3], keep=0}\n"
    text += "  %j: f32[1,32] = reshape(%i) {shape=[1,32]}\n"
    text += const(rand, "w1", [32, 70]) + '  %y: f32[1,70] = contract(%j, %w1) {spec="mk,kn->mn"}\n'
    text += "  return %y, %g\n}\n"
    with open(path, "w") as f:
        f.write(text)
    return path


def ok(got, what=""):
    if got.rc:
        raise Fail(f"{what}: {explain(got)}: {tail(got.out.decode() + got.text(), 4)}")
    return got


def prepare(env, name):
    """A separate folder, because tests run concurrently, and the model in it."""
    folder = os.path.join(env.build, "tuning", name)
    os.makedirs(folder, exist_ok=True)
    env.need_ingot()
    return folder, network(os.path.join(folder, "net.ing"))


def choices(env, model, target, *more):
    got = ok(run([env.ingot, "opt", model, "--march", target, "--choices", *more], 60), "choices")
    return [line.split("\t") for line in got.out.decode().splitlines()]


def write(path, target, rows):
    with open(path, "w") as f:
        f.write(HEAD.format(target) + "".join(f"{key}\t{choice}\t1\t1\n" for key, choice in rows))
    return path


def every(env, target, engine):
    """One run for each rank: every kernel takes its choice of that rank."""
    if engine == "c":
        cpu.need(target)
    folder, model = prepare(env, f"every-{target}-{engine}")
    rank, most = 0, 1
    while rank < most:
        rows, seen = [], set()
        for _ in range(3):  # a choice of Winograd leads to other queries
            more = ["--tuned", write(os.path.join(folder, f"{target}-{engine}-{rank}"), target, rows)]
            table = choices(env, model, target) if not rows else choices(env, model, target, *more)
            fresh = [r for r in table if r[0] not in seen]
            if not fresh:
                break
            seen.update(r[0] for r in fresh)
            rows += [(r[0], r[1 + min(rank, len(r) - 2)]) for r in fresh]
            most = max([most] + [len(r) - 1 for r in fresh])
        path = write(os.path.join(folder, f"{target}-{engine}-{rank}"), target, rows)
        taken = {r[0]: r[1] for r in choices(env, model, target, "--tuned", path)}
        for key, choice in rows:
            if taken.get(key, choice) != choice:
                raise Fail(f"{key}: {taken[key]} was taken, expected {choice}")
        got = run([env.ingot, "verify", model, "--engine", engine, "--march", target, "--tuned", path, "--rtol", "1e-4",
                   "--atol", "2e-5"], 120)
        ok(got, f"choice {rank}")
        rank += 1
    if most < 8:
        raise Fail(f"at most {most} choices, expected 8 for some kernel")


def obeyed(env):
    """The table changes the program; rows with wrong names change nothing."""
    folder, model = prepare(env, "obeyed")

    def lowered(*args):
        return ok(run([env.ingot, "opt", model, "--march", "avx2", "--stop=lower", *args], 60), "opt")

    plain = lowered().out
    table = choices(env, model, "avx2")
    path = os.path.join(folder, "obeyed")
    for row in table:
        other = lowered("--tuned", write(path, "avx2", [(row[0], row[-1])]))
        if (other.out == plain) != (len(row) == 2) or other.text():
            raise Fail(f"{row[0]}: {row[-1]} gives the same program: {other.text()}")
    if lowered("--tuned", write(path, "avx512", [(table[0][0], table[0][-1])])).out != plain:
        raise Fail("a choice for another target was taken")
    wrong = lowered("--tuned", write(path, "avx2", [(table[-1][0], "1000000x1000000 axis 99")]))
    if wrong.out != plain or "is not a legal choice for" not in wrong.text():
        raise Fail(f"a choice that is not legal: {wrong.text()}")


def hostile(env):
    """Malformed files are refused, with the line."""
    folder, model = prepare(env, "hostile")
    head = HEAD.format("avx2")
    cases = {
        "": "empty", "ingot tune 2\n": ":1:", "nonsense": ":1:", "ingot tune 1\nk\tc\t1\t1\n": ":2:",
        "ingot tune 1\nmachine\tavx2\n": ":2:", head + "key only\n": ":3:", head + "k\tc\t1\t1\t1\n": ":3:",
        head + "k\t\t1\t1\n": ":3:", head + "# fine\n\nk\tc\x01\t1\t1\n": ":5:", head + "k" * 5000: ":3:",
        head + "k\tc\t1\t1\t1\t1\t1\n": ":3:",
    }
    for i, (text, want) in enumerate(cases.items()):
        path = os.path.join(folder, f"bad{i}")
        with open(path, "w") as f:
            f.write(text)
        got = run([env.ingot, "opt", model, "--march", "avx2", "--tuned", path], 60)
        if got.rc != 4 or want not in got.text():
            raise Fail(f"{text[:60]!r}: {explain(got)}: {got.text()}")
    with open(path, "w") as f:
        f.write(head + "# all is well\nno such key\tno such choice\t1\t1")
    ok(run([env.ingot, "opt", model, "--march", "avx2", "--tuned", path], 60), "keys that are not asked for")


def measured(env):
    """--tune writes the file, and reads it the next time; what cannot be measured on this machine is refused."""
    folder, _ = prepare(env, "measured")
    rand = random.Random(7)
    model, cache, out = (os.path.join(folder, n) for n in ("one.ing", "none/yet/ingot/tune", "one.o"))
    with open(model, "w") as f:
        f.write("graph (%x: f32[1,16]) {\n" + const(rand, "k", [16, 24])
                + '  %y: f32[1,24] = contract(%x, %k) {spec="mk,kn->mn"}\n  return %y\n}\n')
    home = {"XDG_CACHE_HOME": os.path.join(folder, "none", "yet")}
    shutil.rmtree(os.path.join(folder, "none"), ignore_errors=True)
    build = [env.ingot, "build", model, "--march", "avx2", "-o", out, "--tune"]
    if cpu.can_run("avx2"):
        first = ok(run(build, 120, env=home), "first").text()
        with open(cache) as f:
            lines = f.read().splitlines()
        if "choices in" not in first or lines[0] != "ingot tune 1" or len(lines) < 3:
            raise Fail(f"{first}\n{lines}")
        second = ok(run(build, 60, env=home), "second").text()
        if "nothing to measure" not in second or "choices in" in second:
            raise Fail(second)
        if ok(run([*build, "--quiet"], 60, env=home), "quiet").text():
            raise Fail("--quiet says something")
        with open(cache) as f:
            if f.read().splitlines() != lines:
                raise Fail("the file has changed")
        os.chmod(cache, 0o664)
        third = ok(run(build, 120, env=home), "third").text()
        if "choices in" not in third or "can be written by other users: it is ignored" not in third or os.stat(cache).st_mode & 0o777 != 0o600:
            raise Fail(f"a file that others can write to is used: {third}")
        got = run([*build[:-1], "--tune=" + os.path.join(cache, "below", "a", "file")], 60)
        if got.rc != 5 or "choices in" in got.text():
            raise Fail(f"a file that cannot be written, not refused before measuring: {explain(got)}: {got.text()}")
    other = "neon" if cpu.can_run("sse2") else "avx2"
    foreign = [["--march", other], ["--march", other, "--cc", "cc -DINGOT_PORTABLE"]]
    if shutil.which("arm-none-eabi-gcc"):
        foreign.append(["--march", "avx2", "--cc", "arm-none-eabi-gcc"])
    for args in foreign:
        got = run([env.ingot, "build", model, "-o", out, "--tune=" + os.path.join(folder, "none"), *args], 60)
        if got.rc != 2 or not ("may not run here" in got.text() or "cannot compile for" in got.text()):
            raise Fail(f"{args}: {explain(got)}: {got.text()}")
    got = run([env.ingot, "compile", model, "--tune"], 60)
    if got.rc != 2 or "--march" not in got.text():
        raise Fail(f"compile: {explain(got)}: {got.text()}")


def state(env):
    """Growing state: every run is a first run, so that more runs than the capacity can be measured. The words of --cc are part
    of the key, comments stay, and other ways to choose exclude --tune."""
    cpu.need("avx2")
    folder, _ = prepare(env, "state")
    model, out, path = (os.path.join(folder, n) for n in ("grows.ing", "grows.o", "table"))
    with open(model, "w") as f:
        f.write('graph g sym n in 0..4\n(%1 "past": f32[n,8], %x: f32[1,8]) {\n' + const(random.Random(3), "k", [8, 8])
                + '  %2: f32[n+1,8] = concat(%1, %x) {axis=0}\n  %y: f32[n+1,8] = contract(%2, %k) {spec="mk,kn->mn"}\n'
                + '  return %y "y", %2 "present" next %1\n}\n')
    with open(path, "w") as f:
        f.write(HEAD.format("avx2") + "# ours\nkey\tchoice\t1\t1\n")
    build = [env.ingot, "build", model, "--march", "avx2", "-o", out, "--tune=" + path]
    if "choices in" not in ok(run([*build, "--cc", "cc -DWORD"], 120), "state").text():
        raise Fail("nothing was measured")
    with open(path) as f:
        lines = f.read().splitlines()
    if "# ours" not in lines or not [s for s in lines if s.startswith("machine\tavx2\t") and "\tcc -DWORD: " in s]:
        raise Fail(f"{lines}")
    for aim in ("ram", "size"):
        got = run([*build, "--optimize-for", aim], 60)
        if got.rc != 2 or f"--tune and --optimize-for {aim} exclude" not in got.text():
            raise Fail(f"{aim}: {explain(got)}: {got.text()}")


def accurate(env):
    """Winograd F(4x4) is not offered for sums over so many channels that F(2x2) is used for its accuracy."""
    folder, model = prepare(env, "accurate")
    for out, want in ((256, ["F(4x4)", "F(2x2)", "direct"]), (272, ["F(2x2)", "direct"])):
        with open(model, "w") as f:
            f.write("graph (%x: f32[1,16,32,32]) {\n" + const(random.Random(9), "k", [out, 16, 3, 3])
                    + conv("y", "x", "k", [1, out, 32, 32], pad=1) + "  return %y\n}\n")
        got = [row[1:] for row in choices(env, model, "avx2") if row[0].startswith("winograd")]
        if got != [want]:
            raise Fail(f"{out} channels: {got}, expected {want}")


def many(env):
    """A file of many lines is read in linear time; the last line for a key counts."""
    folder, model = prepare(env, "many")
    row = choices(env, model, "avx2")[0]
    rows = [(row[0], row[1])] + [(f"key {i}", "choice") for i in range(400000)] + [(row[0], row[-1])]
    path = write(os.path.join(folder, "many"), "avx2", rows)
    got = ok(run([env.ingot, "opt", model, "--march", "avx2", "--choices", "--tuned", path], 20), "many lines")
    taken = {r[0]: r[1] for r in (line.split("\t") for line in got.out.decode().splitlines())}
    if taken[row[0]] != row[-1]:
        raise Fail(f"{row[0]}: {taken[row[0]]} was taken, expected {row[-1]}")


def tests(env):
    return [Test("tune/obeyed", lambda: obeyed(env), cost=2), Test("tune/hostile", lambda: hostile(env)),
            Test("tune/accurate", lambda: accurate(env)), Test("tune/many", lambda: many(env)),
            Test("tune/state", lambda: state(env), cost=3),
            Test("tune/measured", lambda: measured(env), cost=3), Test("tune/every-c", lambda: every(env, "avx512", "c"), cost=10),
            Test("tune/every-avx512", lambda: every(env, "avx512", "interp"), cost=3),
            Test("tune/every-avx2", lambda: every(env, "avx2", "interp"), cost=3)]
