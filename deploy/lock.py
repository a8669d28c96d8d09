"""Writes deploy/requirements.lock: the packages of a server with the checksums of their wheels.

    pip install --dry-run --ignore-installed --report report.json -c constraints.txt ".[server]"
    python deploy/lock.py report.json

For the Python and system that runs pip; the container's are CPython 3.11 on Linux, x86-64. PyTorch is left
out: its wheel is another one on every index (CPU, CUDA), so that constraints.txt says its version alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

LOCK = Path(__file__).parent / "requirements.lock"
LEFT_OUT = ("kster", "torch")


def main(report: Path) -> None:
    lines = []
    for package in json.loads(report.read_text())["install"]:
        name, version = package["metadata"]["name"], package["metadata"]["version"]
        if name not in LEFT_OUT:
            checksum = package["download_info"]["archive_info"]["hashes"]["sha256"]
            lines.append(f"{name}=={version} --hash=sha256:{checksum}\n")
    head = "# CPython 3.11, Linux x86-64; written by deploy/lock.py. PyTorch is left out: see there.\n"
    LOCK.write_text(head + "".join(sorted(lines, key=str.lower)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
