"""A folder that is whole or not there: written beside its place, then renamed to it.

A folder that stands there is replaced only if it holds nothing but what this writes: no file of anybody else is lost.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mechdesign.errors import InputError
from mechdesign.mechanism.storage.files import check_target, unwritten

_CODE = {"report.mjs", "report.js", "node.mjs", "demo.js"}
_TEXTS = {"index.html", "README.md", "package.json", "report.d.mts", "node.d.mts", "report.d.bin.ts"}
REGION = {"region.map", "sample_region.c"}  # of compact maps alone
NAMES = frozenset({"report.bin"} | _TEXTS | _CODE | REGION)


def check_folder(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path of a folder to write, if nothing stands there, or, with `overwrite`, a folder that this wrote.

    Raises: InputError, before any work is done.
    """
    target = Path(path)
    try:
        mode = target.lstat().st_mode
    except (OSError, ValueError):
        return check_target(target)
    if stat.S_ISREG(mode):
        raise InputError("is a file", field="output", value=target, remedy="name a folder")
    if not stat.S_ISDIR(mode):
        return check_target(target)
    if not overwrite:
        raise InputError("exists already", field="output", value=target, remedy="pass --overwrite, or another name")
    try:
        entries = list(os.scandir(target))
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})", field="output", value=target, remedy="name another folder"
        ) from error
    others = sorted({entry.name for entry in entries} - NAMES)
    if others or not all(entry.is_file(follow_symlinks=False) for entry in entries):
        raise InputError(
            "holds other files, which would be lost",
            field="output",
            value=f"{target}: {', '.join(others[:3])}",
            remedy="name another folder, or move them",
        )
    return target


def write_folder(target: Path, contents: Mapping[str, bytes], *, overwrite: bool = False) -> None:
    """Write the files (by name, of `NAMES`) and give them the name `target`; nothing stays behind on failure, and a
    folder that stood there stands again.

    Raises: InputError as `check_folder`; FileFormatError where the operating system refuses.
    """
    beside, old = None, None
    try:
        beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
        for name, content in contents.items():
            with (beside / name).open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o777 & ~umask)
        if check_folder(target, overwrite=overwrite).exists():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".old"))
            old.rmdir()
            target.replace(old)
        beside.replace(target)
    except OSError as error:
        if old is not None and old.exists() and not target.exists():
            old.replace(target)
        raise unwritten(target, error) from error
    finally:
        for left in (beside, old):
            if left is not None and (left is beside or target.exists()):
                shutil.rmtree(left, ignore_errors=True)
