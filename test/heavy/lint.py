"""Static checks that take minutes: cppcheck, and clang's analyzer at four times the depth that `make test` has."""
from lib.core import ROOT, Fail, Test, need, run, tail
from suite.lint import NODES, look_at, sources


def cppcheck():
    """cppcheck 2.10 does not see that fail() never returns, so what it deduces from conditions is left to clang's
    analyzer, which does; the rest of its checks count."""
    need("cppcheck")
    off = ["nullPointerRedundantCheck", "nullPointer", "ctunullpointer", "uninitvar", "shiftNegative", "autoVariables",
           "missingInclude", "unknownMacro", "invalidPointerCast", "internalAstError",
           "returnDanglingLifetime:src/back/llvm/*"]  # what LLVM makes of an array does not point into it
    got = run(["cppcheck", "--quiet", "-j2", "--std=c11", "--language=c", "--enable=portability,performance",
               "--inline-suppr", "--error-exitcode=1", *("--suppress=" + x for x in off),
               "-D_GNU_SOURCE", "-D__GNUC__=12", "-DVM_SWITCH", "-Isrc", "src"], 400, cwd=ROOT)
    if got.rc:
        raise Fail(tail(got.text(), 20))


def tests(env):
    return [Test("heavy/lint/cppcheck", cppcheck, cost=200)] + [
            Test("heavy/lint/tidy " + p, lambda p=p: look_at(p, 4 * NODES), cost=2) for p in sources(".c", tops=("src",))]
