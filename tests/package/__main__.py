"""Wheel, sdist, single file and steps of the image, tried in empty folders: python -m tests.package (make package).

It needs the package registry. The results are left in dist/.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.processes import Processes

from .image import try_image
from .single_file import try_single_file
from .tools import say
from .wheel import build, look_into, try_wheel


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(Path(folder))
        try:
            wheel = build(Path(folder))
            look_into(wheel)
            try_wheel(wheel, processes)
            try_single_file(wheel, processes)
            system = shutil.which("python3", path="/usr/local/bin:/usr/bin")
            if os.geteuid() == 0 and system:
                try_image(processes, system)
            else:
                say("image: not tried, that takes root and a python3 that other users can run")
        finally:
            processes.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
