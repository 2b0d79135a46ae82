"""Inspects generated C: declarations, tokens, call graph, and the object files that compilers make of it."""
import os
import re
from .core import Fail, run, tail

TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|\S""", re.S)
MOVES = {"memcpy", "memmove", "memset"}
HARDENED = {"__stack_chk_fail"}  # by compilers that check the stack unless told otherwise, as Ubuntu's do


def tokens(text):
    """The tokens without comments; line splices and trigraphs are resolved first, as in a C99 compiler."""
    for pair, char in (("??=", "#"), ("??/", "\\"), ("??'", "^"), ("??(", "["), ("??)", "]"), ("??!", "|"), ("??<", "{"),
                       ("??>", "}"), ("??-", "~")):
        text = text.replace(pair, char)
    text = text.replace("\\\n", "")
    return [t for t in TOKEN.findall(text) if not t.startswith(("/*", "//"))]


def macro(text, name, other=False):
    """Value of a macro; other: the definition under #else, if there is one."""
    found = re.findall(rf"#define {name} (\S+)", text)
    if not found:
        raise Fail(f"no macro {name}")
    return int(found[-1 if other else 0])


def cc(command, what, merge=True):
    got = run(command, 240, merge=merge)
    if got.rc or got.timed_out:
        raise Fail(f"{what}: {tail(got.out.decode('utf-8', 'replace'), 8)}")
    return got.out.decode("utf-8", "replace")


# ---- forbidden contents of an object file ----

def check_symbols(path, extra=()):
    """Fails on undefined symbols other than memory moves and, if allowed, compiler helpers."""
    names = {line.split()[-1] for line in cc(["nm", "-u", path], "nm").splitlines() if line.strip()}
    bad = {n for n in names if n not in MOVES | HARDENED and not n.startswith(tuple(extra) or ("\0",))}
    if bad:
        raise Fail(f"{os.path.basename(path)} needs {' '.join(sorted(bad))}")


def check_data(path, tool="size", writable=(".data", ".bss", ".tdata", ".tbss")):
    """Fails on writable static data."""
    for line in cc([tool, "-A", path], tool).splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isdigit() and int(words[1]) and words[0].startswith(writable) \
                and not words[0].startswith(".data.rel.ro"):
            raise Fail(f"{os.path.basename(path)}: {words[1]} bytes in {words[0]}")


def check_external(path, prefix):
    """Fails unless every external name begins with the name of the model."""
    for line in cc(["nm", "-g", "--defined-only", path], "nm").splitlines():
        if line.split() and not line.split()[-1].startswith(prefix + "_"):
            raise Fail(f"{os.path.basename(path)} defines {line.split()[-1]}")


# ---- stack and calls, from gcc's -fstack-usage -fcallgraph-info=su ----

NODE = re.compile(r'node: \{ title: "([^"]*)" label: "([^"]*)"')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"')


def deepest(ci, root):
    """Maximum stack bytes of root and its callees. Fails on frames of unknown size, recursion and calls through pointers."""
    size, calls = {}, {}
    for title, label in NODE.findall(ci):
        m = re.search(r"(\d+) bytes \(([^)]*)\)", label)
        if m and m[2] not in ("static", "dynamic,bounded"):  # bounded: arguments pushed for a call; gcc counts them
            raise Fail(f"{title}: frame is {m[2]}")
        size[title] = int(m[1]) if m else 0
    for a, b in EDGE.findall(ci):
        if "__indirect_call" in b:
            raise Fail(f"{a} calls through a pointer")
        calls.setdefault(a, set()).add(b)
    known, path = {}, []

    def depth(f):
        if f in path:
            raise Fail(f"{f} calls itself")
        if f not in known:
            path.append(f)
            known[f] = size.get(f, 0) + 8 + max((depth(g) for g in calls.get(f, ())), default=0)  # 8: return address
            path.pop()
        return known[f]
    for f in list(size):
        depth(f)  # recursion anywhere counts
    tops = [f for f in size if f == root or f.endswith(":" + root)]
    if not tops:
        raise Fail(f"no function {root} in the call graph")
    return max(known[f] for f in tops)


# An empty instruction that keeps an address in its register, so that compilers do not compute it again.
HERE = '#define IG_FENCE(p) __asm__ volatile("" : "+r"(p))\n'


def check_text(text):
    """Checks the text: no jumps, no function pointers, no allocation on the stack."""
    words = tokens(text.replace(HERE, ""))
    for word in ("goto", "setjmp", "longjmp", "alloca", "__builtin_alloca", "volatile", "__DATE__", "__TIME__", "__FILE__"):
        if word in words:
            raise Fail(f"the text has `{word}`")
    for i in range(len(words) - 4):
        if words[i] == "(" and words[i + 1] == "*" and words[i + 3] == ")" and words[i + 4] == "(":
            raise Fail(f"a pointer to a function: {' '.join(words[i:i + 6])}")


# ---- a program that calls the entry with each array in its own heap block ----

FILL = {"float": "(float)((int)(i % 33) - 16) / 16", "double": "(double)((int)(i % 33) - 16) / 16", "uint16_t": "0x3800 + i % 64",
        "uint8_t": "i % 2", "int8_t": "i % 5"}


def caller(name, source, shift=0, before="", after="", end=""):
    """C text of `int check_NAME(void)`: runs the model on heap blocks of exact size and, if it succeeds, reads every byte of the
    outputs. shift: elements between the start of a block and the array in it. before, after: statements around the call, with the
    names of the definition (in0, out0); end: statements after the bytes are read into the unsigned `sum`."""
    m = re.search(rf"int {name}_run\(([^()]*?)\) \{{", source)  # its own names, not those of the model
    up = name.upper()
    lines, args, ends = [], [], []

    def block(ident, kind, count):
        lines.append(f"  {kind} *b{ident} = malloc(({count} + {shift}) * sizeof *b{ident} + !{count});\n"
                     f"  {kind} *{ident} = b{ident} + {shift};")
        args.append(ident)
        return f"free(b{ident});"

    for param in m[1].split(","):
        kind, _, ident = re.sub(r"\s+", " ", param.strip().replace("*", "* ")).rpartition(" ")
        kind = kind.replace(" *", "*").strip()
        if ident == "arena":
            lines.append(f"  void *arena = aligned_alloc(64, ({up}_ARENA_BYTES + 63) / 64 * 64);")
            args.append("arena")
            ends.append("  free(arena);")
        elif ident == "seed":
            args.append("0")
        elif re.fullmatch(r"n\d+", ident):
            args.append(re.search(rf"if \({ident} < -?\d+ \|\| {ident} > (\d+)\) return 2", source)[1])
        elif ident.startswith("in"):
            k, t = ident[2:], kind.replace("const ", "").replace("*", "")
            count = f"{up}_INPUT{k}_ELEMENTS"
            ends.append("  " + block(ident, t, count))
            lines.append(f"  for (size_t i = 0; i < (size_t){count}; i++) {ident}[i] = ({t})({FILL.get(t, 'i % 3')});")
        elif ident.endswith("_shape"):
            lines.append(f"  int64_t {ident}[16] = {{0}};")
            args.append(ident)
        else:
            k, t = ident[3:], kind.replace("*", "")
            shape = f"out{k}_shape" if f"out{k}_shape" in m[1] else None
            count = f"{up}_OUTPUT{k}_ELEMENTS"
            free = block(ident, t, count)
            if shape:
                ends.append(f"  {{ size_t n = 1; for (int i = 0; i < {up}_OUTPUT{k}_RANK; i++) n *= (size_t){shape}[i]; "
                            f"if (!status) sum += look({ident}, n * sizeof *{ident}); {free} }}")
            else:
                ends.append(f"  if (!status) sum += look({ident}, {count} * sizeof *{ident});\n  {free}")
    call = f"  {before}\n  int status = {name}_run({', '.join(args)});\n  unsigned sum = 0;\n  {after}"
    return f"static int check_{name}(void) {{\n" + "\n".join(lines + [call] + ends + [f"  {end}"]) + "\n  return status ? status : sum == 12345;\n}\n"


LOOK = """static unsigned look(const void *p, size_t n) {
  const unsigned char *b = p;
  unsigned sum = 0;
  for (size_t i = 0; i < n; i++)
    if (b[i]) sum = sum * 31 + b[i];
  return sum;
}
"""
