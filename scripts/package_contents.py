"""Check the files of a wheel and an sdist: python scripts/package_contents.py WHEEL SDIST."""

import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

REQUIRED_FILES = (
    "mechdesign/__init__.pyi",
    "mechdesign/py.typed",
    "mechdesign/_problems/philadelphia.py",
    "mechdesign/_problems/data/philadelphia_density_2000.asc",
    "mechdesign/verification/verify_table.py",
    "mechdesign/devicemap/sample_region.c",
    "mechdesign/devicemap/region_location.h",
)
RECORDS = {"Name": "mechdesign", "Requires-Python": ">=3.11", "License-Expression": "MIT"}
MAX_BYTES = 10_000_000


def problems_of(wheel: dict[str, bytes], sdist: set[str], checkout: set[str]) -> list[str]:
    """The errors in the files of a wheel and the names of an sdist, given the checkout's names in a wheel."""
    (metadata,) = [wheel[name].decode() for name in wheel if name.endswith(".dist-info/METADATA")]
    head = dict(line.split(": ", 1) for line in metadata.split("\n\n")[0].splitlines() if ": " in line)
    wrong = [f"{name} is missing in the wheel" for name in sorted({*REQUIRED_FILES, *checkout} - set(wheel))]
    wrong += [
        f"{name} is in the wheel, not in the checkout"
        for name in sorted(set(wheel) - checkout)
        if not is_metadata(name)
    ]
    wrong += [f"{name} is compiled" for name in wheel if name.endswith((".pyc", ".nbi", ".nbc"))]
    wrong += [f"{key} is {head.get(key)}, not {value}" for key, value in RECORDS.items() if head.get(key) != value]
    packed = {name.replace("mechdesign/_problems/", "problems/") for name in checkout}
    wrong += [f"{name} is missing in the sdist" for name in sorted({*packed, "README.md", "LICENSE"} - sdist)]
    if not any(name.endswith("entry_points.txt") and b"mechdesign.cli.main:main" in wheel[name] for name in wheel):
        wrong.append("the wheel has no command mechdesign")
    if sum(map(len, wheel.values())) > MAX_BYTES:
        wrong.append(f"the wheel holds more than {MAX_BYTES} bytes")
    return wrong


def is_metadata(name: str) -> bool:
    """True if a file of a wheel is part of its metadata."""
    return PurePosixPath(name).parts[0].endswith(".dist-info")


def main() -> int:
    """Check both files against the checkout of this script."""
    root = Path(__file__).resolve().parent.parent
    skipped = ("__pycache__", ".nbi", ".nbc", ".pyc")
    folders = {"mechdesign": "mechdesign", "problems": "mechdesign/_problems"}
    checkout = {
        f"{inside}/{path.relative_to(root / folder).as_posix()}"
        for folder, inside in folders.items()
        for path in (root / folder).rglob("*")
        if path.is_file() and not any(word in str(path) for word in skipped)
    }
    with zipfile.ZipFile(sys.argv[1]) as archive:
        wheel = {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(sys.argv[2]) as archive:
        sdist = {"/".join(PurePosixPath(name).parts[1:]) for name in archive.getnames()}
    wrong = problems_of(wheel, sdist, checkout)
    print("\n".join(wrong) or f"{len(wheel)} files in the wheel, {len(sdist)} in the sdist")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
