"""Builds the Python package: the build backend (PEP 517, 660) that pyproject.toml names. It needs only make and a C compiler.

In: the source tree. Out: a wheel with the library and the command inside, which installs without a compiler, for any Python 3 on machines
of the same kind; or an archive of the sources. The wheel says which C library it needs (manylinux_2_N, PEP 600): the newest
symbol that the library asks for, found in its ELF headers; the tag is plain linux if the library needs more than libc. All files have the
same date, so that the same sources give the same bytes.
"""
import base64
import gzip
import hashlib
import io
import os
import platform
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAME = "ingot"
SOURCES = ("CHANGELOG.md", "LICENSE", "Makefile", "README.md", "bench/peak.c", "docs/ingot.1", "models", "pyproject.toml", "python", "src",
           "tools")
EPOCH = 315619200  # 1980-01-02: the first day that zip can store in every time zone
# Libraries of every machine with glibc. A wheel that needs only these is a manylinux wheel.
LIBC = re.compile(r"(libc|libm|libpthread|libdl|librt|ld-linux.*)\.so\.\d+$")
SUMMARY = "A compiler for neural networks, from ONNX to C, called from Python"


def version():
    with open(os.path.join(ROOT, "src", "ingot.h"), encoding="utf-8") as f:
        return re.search(r'#define INGOT_VERSION\s+"([^"]+)"', f.read())[1]


def metadata():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    lines = ("Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {version()}", f"Summary: {SUMMARY}", "License: Apache-2.0",
             "Requires-Python: >=3.9", "Requires-Dist: numpy>=1.23", "Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + text


# ---- what a library needs ----

def sections(data):
    """{type: (bytes, bytes of the linked section)} of a 64-bit little-endian ELF file."""
    if data[:6] != b"\177ELF\2\1":
        raise ValueError("no ELF file of 64 bits")
    table, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    rows = [struct.unpack_from("<IIQQQQII", data, table + i * size) for i in range(count)]

    def contents(row):
        return data[row[4]:row[4] + row[5]]
    return {row[1]: (contents(row), contents(rows[row[6]]), row[7]) for row in rows if row[1] in (6, 0x6FFFFFFE)}


def needs(path):
    """(names of libraries, newest version of glibc) that a shared library requires; (0, 0): none."""
    with open(path, "rb") as f:
        found = sections(f.read())

    def text(names, at):
        return names[at:names.index(b"\0", at)].decode()
    dynamic, names, _ = found[6]
    entries = [struct.unpack_from("<QQ", dynamic, at) for at in range(0, len(dynamic), 16)]
    libraries = [text(names, value) for tag, value in entries if tag == 1]
    newest, at = (0, 0), 0
    table, names, count = found.get(0x6FFFFFFE, (b"", b"", 0))
    for _ in range(count):
        _, entries, _, first, step = struct.unpack_from("<HHIII", table, at)
        aux = at + first
        for _ in range(entries):
            _, _, _, name, more = struct.unpack_from("<IHHII", table, aux)
            m = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", text(names, name))
            newest = max(newest, (int(m[1]), int(m[2]))) if m else newest
            aux += more
        at += step
    return libraries, newest


def tag(path):
    """Returns the wheel tag, py3-none-PLATFORM."""
    machine = platform.machine()
    try:
        libraries, newest = needs(path)
    except (ValueError, KeyError, struct.error):
        libraries, newest = ["?"], (0, 0)
    many = newest != (0, 0) and all(LIBC.match(x) for x in libraries)
    return f"py3-none-manylinux_{newest[0]}_{max(newest[1], 17)}_{machine}" if many else f"py3-none-linux_{machine}"


# ---- building ----

def make(folder):
    """Builds the library and the command into folder, stripped."""
    names = ("libingot.so", "ingot")
    subprocess.run(["make", "-C", ROOT, f"-j{os.cpu_count() or 1}", *(f"build/{name}" for name in names)], check=True)
    for name in names:
        shutil.copy(os.path.join(ROOT, "build", name), os.path.join(folder, name))
        if shutil.which("strip"):
            subprocess.run(["strip", os.path.join(folder, name)], check=True)
    return [os.path.join(folder, name) for name in names]


def package():
    """Yields (name in the wheel, bytes) of the Python files."""
    top = os.path.join(ROOT, "python", NAME)
    for name in sorted(os.listdir(top)):
        if name.endswith(".py") or name == "py.typed":
            with open(os.path.join(top, name), "rb") as f:
                yield f"{NAME}/{name}", f.read()


def write_wheel(folder, label, files):
    stem = f"{NAME}-{version()}"
    with open(os.path.join(ROOT, "LICENSE"), "rb") as f:
        licence = f.read()
    info = f"{stem}.dist-info"
    about = f"Wheel-Version: 1.0\nGenerator: ingot\nRoot-Is-Purelib: false\nTag: {label}\n"
    files = [*files, (f"{info}/METADATA", metadata().encode()), (f"{info}/WHEEL", about.encode()), (f"{info}/licenses/LICENSE", licence)]
    record = ""
    for name, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    record += f"{info}/RECORD,,\n"
    path = f"{stem}-{label}.whl"
    with zipfile.ZipFile(os.path.join(folder, path), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in [*files, (f"{info}/RECORD", record.encode())]:
            entry = zipfile.ZipInfo(name, (1980, 1, 2, 0, 0, 0))
            is_program = "/scripts/" in name or name.endswith(".so")
            entry.external_attr, entry.compress_type = (0o100755 if is_program else 0o100644) << 16, zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        library, program = make(folder)
        with open(library, "rb") as f, open(program, "rb") as g:
            compiled = [(f"{NAME}/libingot.so", f.read()), (f"{NAME}-{version()}.data/scripts/ingot", g.read())]
        return write_wheel(wheel_directory, tag(library), [*package(), *compiled])


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel that only refers to the source tree; the library is the one in build/."""
    with tempfile.TemporaryDirectory() as folder:
        label = tag(make(folder)[0])
    return write_wheel(wheel_directory, label, [(f"{NAME}.pth", (os.path.join(ROOT, "python") + "\n").encode())])


def sources():
    for entry in SOURCES:
        path = os.path.join(ROOT, entry)
        if os.path.isfile(path):
            yield entry
        for folder, names, files in os.walk(path):
            names[:] = sorted(n for n in names if n != "__pycache__" and not n.startswith("."))
            for name in sorted(files):
                yield os.path.relpath(os.path.join(folder, name), ROOT)


def build_sdist(sdist_directory, config_settings=None):
    stem = f"{NAME}-{version()}"
    files = [("PKG-INFO", metadata().encode(), 0o644)]
    for name in sources():
        with open(os.path.join(ROOT, name), "rb") as f:
            files.append((name, f.read(), 0o755 if os.access(os.path.join(ROOT, name), os.X_OK) else 0o644))
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, data, mode in files:
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size, entry.mode, entry.mtime = len(data), mode, EPOCH
            t.addfile(entry, io.BytesIO(data))
    with open(os.path.join(sdist_directory, f"{stem}.tar.gz"), "wb") as f, \
            gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=EPOCH) as z:
        z.write(raw.getvalue())
    return f"{stem}.tar.gz"
