"""Writes the files of docs/results/ and names the CPU of this machine for them."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def path(name):
    return os.path.join(ROOT, "docs", "results", name)


def write(name, text):
    """Replaces docs/results/NAME."""
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w", encoding="utf-8") as f:
        f.write(text.rstrip("\n") + "\n")
    print(os.path.relpath(path(name), ROOT))


def write_between(file, mark, text):
    """Replaces the text between `<!-- MARK -->` and `<!-- end -->` in a file."""
    with open(file, encoding="utf-8") as f:
        old = f.read()
    new, n = re.subn(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", lambda m: m[1] + text + m[2], old, flags=re.S)
    if n != 1:
        raise SystemExit(f"{file}: expected the marks <!-- {mark} --> and <!-- end --> once, found {n}")
    with open(file, "w", encoding="utf-8") as f:
        f.write(new)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        found = re.search(r"model name\s*: (.*)", f.read())
    return (found[1] if found else "unknown") + f", {os.cpu_count()} CPUs"
