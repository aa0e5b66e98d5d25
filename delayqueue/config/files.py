"""The files that settings name: none is so large that reading it would hang the server or fill its memory."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4 << 20  # 50,000 tokens, or the authorities of a whole system ten times over


def read_limited(path: Path) -> bytes:
    """What the file holds. Raises OSError if it cannot be read, or has more than MOST_BYTES, as /dev/zero does."""
    with path.open("rb", buffering=0) as file:
        content = b""
        while len(content) <= MOST_BYTES and (more := file.read(MOST_BYTES + 1 - len(content))):
            content += more
    _check_size(len(content))
    return content


def check_readable(path: Path) -> None:
    """Check a file that a library reads. Raises OSError if it has more than MOST_BYTES, or no end, like a device."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file")
    _check_size(status.st_size)


def _check_size(size_bytes: int) -> None:
    if size_bytes > MOST_BYTES:
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)}, has more than {MOST_BYTES} bytes")
