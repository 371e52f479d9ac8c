"""Look for known vulnerabilities of the dependencies with pip-audit: of the oldest releases that pyproject.toml allows,
and of those that are installed here.

    python tools/audit.py
    python tools/audit.py --service osv      ask osv.dev instead of the package index
    python tools/audit.py --floors           only print the oldest allowed releases, as constraints for pip

pip-audit runs in an environment of its own, which is made in a temporary folder. The exit code is 1 if there is one,
and 2 if the database cannot be reached.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit both lists; 0 without findings, 1 with some, 2 if the database cannot be reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--service", choices=("pypi", "osv"), default="pypi", help="the database")
    parser.add_argument("--floors", action="store_true", help="only print the oldest allowed releases")
    options = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["verify"]]
    if options.floors:
        print("\n".join(floors(needed)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        tool = _installed(Path(folder))
        codes = [
            _audit(tool, Path(folder), title, pins, options.service)
            for title, pins in (("oldest allowed", floors(needed)), ("installed", installed(needed)))
        ]
    return max(codes)


def floors(requirements: Iterable[str]) -> list[str]:
    """The oldest releases of requirements such as `onnx>=1.17`, as pins."""
    found = []
    for each in requirements:
        match = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", each)
        if match is None:
            raise SystemExit(f"{each}: a requirement of the form name>=release is expected")
        found.append(f"{match[1]}=={match[2]}")
    return found


def installed(requirements: Iterable[str]) -> list[str]:
    """The releases in this environment, as pins."""
    names = [re.split(r"[^A-Za-z0-9_.-]", each)[0] for each in requirements]
    return [f"{name}=={metadata.version(name)}" for name in names]


def _installed(folder: Path) -> Path:
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "pip-audit"], check=True)
    return python


def _audit(python: Path, folder: Path, title: str, pins: Sequence[str], service: str) -> int:
    listed = folder / "pins.txt"
    listed.write_text("\n".join(pins))
    print(f"{title}: {', '.join(pins)}", flush=True)
    command = ["-m", "pip_audit", "-r", str(listed), "--no-deps", "--disable-pip", "--vulnerability-service", service]
    done = subprocess.run([str(python), *command], capture_output=True, text=True)
    print(done.stdout + "\n".join(line for line in done.stderr.splitlines() if "Traceback" not in line)[-2000:])
    is_answer = "nown vulnerabilit" in done.stderr and "could not be audited" not in done.stdout
    if not is_answer:
        print("the database of vulnerabilities cannot be reached", file=sys.stderr)
    return done.returncode if is_answer else 2


if __name__ == "__main__":
    sys.exit(main())
