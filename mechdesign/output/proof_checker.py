"""Run the checker that is extracted from machine-checked proofs on the export of a mechanism."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.proof_file import write_proof
from mechdesign.output.table_formats import Content

_PROVED, _NOT_PROVED = ": proved", 1  # the end of a line, and the exit code of a claim that does not hold
_REMEDY = "give the path of mechdesign-check, which make -C proofs builds"


def claims_proved_by(checker: str | Path, stored: MechanismFile) -> list[str]:
    """Return the claims of a mechanism that the program `checker` proves, in its words."""
    # Raises a VerificationError if it does not prove all of them, and an InputError if it is another program.
    program = checker_program(checker)
    with tempfile.TemporaryDirectory(prefix="mechdesign-") as folder:
        target = Path(folder) / "table.proof"
        write_proof(Content(stored=stored, rows=range(stored.domain.size)), target)
        try:
            ended = subprocess.run([program, str(target)], capture_output=True, check=False)  # noqa: S603 - the user's
        except OSError as error:
            raise InputError(f"cannot be run ({error.strerror})", field="checker", value=checker) from error
    lines = ended.stdout.decode("ascii", "replace").splitlines()
    if ended.returncode == _NOT_PROVED and lines:
        broken = next((line for line in lines if not line.endswith(_PROVED)), lines[0])
        raise VerificationError(f"the checker does not prove it: {broken[:200]}", field="checker", value=checker)
    if ended.returncode != 0 or not lines or not all(line.endswith(_PROVED) for line in lines):
        said = (ended.stderr.decode("ascii", "replace").splitlines() or ["nothing"])[0][:200]
        message = f"is not a checker of this format (exit code {ended.returncode}, it says {said!r})"
        raise InputError(message, field="checker", value=checker, remedy=_REMEDY)
    return [line.removesuffix(_PROVED) for line in lines]


def checker_program(checker: str | Path) -> str:
    """Return the path of a program, or raise an InputError for an unknown one."""
    program = shutil.which(checker)
    if program is None:
        raise InputError("is not a program", field="checker", value=checker, remedy=_REMEDY)
    return program
