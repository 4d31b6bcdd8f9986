"""Builds the wheel: build_wheel.py LIBBATON DIRECTORY. Works offline.

Needs pip, setuptools and wheel; newer setuptools have wheel inside.
"""

import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path


def missing_packages() -> list:
    # Without importing them: setuptools must come before distutils, which pip may have brought.
    missing = [name for name in ("pip", "setuptools", "wheel") if find_spec(name) is None]
    setuptools = find_spec("setuptools")
    if setuptools and setuptools.origin and "wheel" in missing:
        if Path(setuptools.origin).parent.joinpath("command/bdist_wheel.py").exists():
            missing.remove("wheel")
    return missing


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    missing = missing_packages()
    if missing:
        packages = " ".join(f"python3-{name}" for name in missing)
        print(f"build_wheel.py: needs {', '.join(missing)}; on Debian: apt install {packages}",
              file=sys.stderr)
        return 1
    library, into = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as directory:
        stage = Path(directory) / "python"
        shutil.copytree(Path(__file__).parent, stage,
                        ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
        shutil.copyfile(library, stage / "src/baton/libbaton.so.0")
        done = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps",
             "--no-index", "--disable-pip-version-check", "--quiet", "--wheel-dir", str(into),
             str(stage)])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
