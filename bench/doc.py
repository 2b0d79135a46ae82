"""docs/performance.md has sections by several programs of this folder: each replaces its own and leaves those of the others."""
import os
import re

PATH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "performance.md")
SECTION = re.compile(r"^## (.*)\n(?:.*\n)*?(?=## |\Z)", re.M)


def sections():
    """{title: text} in the order of the file"""
    if not os.path.exists(PATH):
        return {}
    with open(PATH, encoding="utf-8") as f:
        return {m[1]: m[0].rstrip("\n") + "\n" for m in SECTION.finditer(f.read().rstrip("\n") + "\n")}


def write_section(text):
    """In the place of the section with the title that text begins with, or at the end."""
    title = SECTION.match(text)[1]
    with open(PATH, encoding="utf-8") as f:
        old = f.read()
    there = {**sections(), title: text.rstrip("\n") + "\n"}
    with open(PATH, "w", encoding="utf-8") as f:
        f.write("\n".join([old[:old.index("\n## ") + 1].rstrip("\n") + "\n", *there.values()]))


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        found = re.search(r"model name\s*: (.*)", f.read())
    return (found[1] if found else "unknown") + f", {os.cpu_count()} CPUs"
