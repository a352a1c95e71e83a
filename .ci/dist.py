"""Builds the wheel and the sdist twice, compares their bytes, and checks them: `make dist`.

The second build starts from the sdist alone, without git, in another folder and with other permissions. The files carry
one date: SOURCE_DATE_EPOCH, or that of the commit, or, in an sdist, that of its files.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"


def call(*command: str | Path) -> None:
    """Run a command of this environment; end with its code if it fails."""
    done = subprocess.run([sys.executable, "-m", *map(str, command)], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def epoch() -> str:
    """Return the date that all files of the release carry, in seconds since 1970."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    if (sdist := ROOT / "PKG-INFO").exists():
        return str(int(sdist.stat().st_mtime))
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"The date of the release is unknown: {done.stderr.strip()}. Set SOURCE_DATE_EPOCH.")
    return done.stdout.strip()


def build(source: Path, target: Path) -> dict[str, str]:
    """Build both files of a source folder, each from it; return their digests by name."""
    for kind in ("--sdist", "--wheel"):
        call("build", "--no-isolation", kind, "--outdir", target, source)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(target.iterdir())}


def main() -> int:
    """Build, compare and check; return 0 if all is well."""
    os.environ["SOURCE_DATE_EPOCH"] = epoch()
    shutil.rmtree(DIST, ignore_errors=True)
    first = build(ROOT, DIST)
    with tempfile.TemporaryDirectory() as scratch:
        os.umask(0o077)
        (sdist,) = DIST.glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch, filter="data")
        second = build(Path(scratch) / sdist.name.removesuffix(".tar.gz"), Path(scratch) / "dist")
    if first != second:
        print(f"Two builds differ: {first} from the checkout, {second} from the sdist.", file=sys.stderr)
        return 1
    files = sorted(DIST.iterdir())
    call("twine", "check", "--strict", *files)
    call("check_wheel_contents", "--toplevel", "refold", *DIST.glob("*.whl"))
    print("\n".join(f"{digest}  dist/{name}" for name, digest in first.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
