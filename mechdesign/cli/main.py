"""The command line: `main` runs a command, prints an error in one line, and returns an exit code.

| exit code | meaning |
|---|---|
| 0 | success: a certified file was written or verified |
| 1 | the design or the verification failed, nothing uncertified was written; the certified file of a design that |
|   | ended more than ten times above its gap, without a limit or Ctrl-C, stays; or the output could not be printed |
| 2 | bad input: nothing was written |
| 130 | interrupted (Ctrl-C) |

With --json stdout has one JSON document, {"error": ...} on failure; all else goes to stderr. A closed pipe ends with 1
and no message. MECHDESIGN_TRACEBACK=1 prints the traceback of an unforeseen exception (kind "internal").
"""

from __future__ import annotations

import atexit
import signal
import sys

from mechdesign.base.streams import safe_streams, visible
from mechdesign.cli.parameters import unknown_option
from mechdesign.cli.remedies import as_options
from mechdesign.errors import (
    INTERRUPTED,
    FileFormatError,
    InputError,
    InternalError,
    MechdesignError,
    OutputError,
    SizeError,
)

_LEFT = "no unfinished file remains"
_WORK = "; to resume from the --work folder, run the command again"


def main() -> None:
    """Run the command line; errors become one line, or one JSON document with --json, and an exit code."""
    with safe_streams(sys.stdout, sys.stderr):
        try:
            code = _exit_code()
        except KeyboardInterrupt:
            _say(MechdesignError("interrupted", field="run", remedy=_LEFT + _WORK * ("--work" in " ".join(sys.argv))))
            code = INTERRUPTED
    # From here on an interrupt would kill the process while it closes files.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def _exit_code() -> int:
    """Run the command, print its error and return its exit code; KeyboardInterrupt if it was interrupted."""
    try:
        return _run()
    except MechdesignError as error:
        return _say(error)
    except Exception as error:
        if _is_interrupt(error):
            raise KeyboardInterrupt from error
        return _say(_as_package_error(error))


def _run() -> int:
    """Run the command and return its exit code; errors of Typer become those of this package."""
    import typer

    # Imported here, so that an interrupt during start-up is reported like others.
    from mechdesign.base.progress import progress
    from mechdesign.cli.app import command

    # The progress line names the command, without its options and paths.
    named = " ".join(word for word in sys.argv[1:3] if word.isalpha()) or "mechdesign"
    try:
        with progress(named, patient=True):
            code = command()(sys.argv[1:] or ["--help"], prog_name="mechdesign", standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        message = error.format_message().rstrip(".")
        if message.startswith("Missing "):  # the field in front names the option
            message = "is missing"
        command_path = getattr(getattr(error, "ctx", None), "command_path", "mechdesign")
        refused = InputError(message, field=_option_of(error))
        if hasattr(error, "possibilities"):  # of an option that the command does not have
            refused = unknown_option(_option_of(error), error.possibilities or ())
        refused.remedy = refused.remedy or f"see {command_path} --help"
        raise refused from error
    if code == INTERRUPTED:  # Typer turns a KeyboardInterrupt into this code silently
        raise KeyboardInterrupt
    # A closed pipe or a full disk must fail here, where it becomes an exit code, not at the end of the process.
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _option_of(error: Exception) -> str:
    words = getattr(getattr(error, "param", None), "opts", ()) or ("command line",)
    return str(getattr(error, "option_name", None) or words[0].lstrip("-"))


def _say(error: MechdesignError) -> int:
    """Print an error, and return its exit code."""
    error.remedy = None if error.remedy is None else as_options(error.remedy)
    shown: MechdesignError = error
    if "--json" in sys.argv and not isinstance(error, OutputError):
        import json

        try:
            print(json.dumps({"error": error.as_dict()}), flush=True)
            return error.exit_code
        except OutputError as unprinted:
            shown = unprinted
    if sys.stderr is not None and not (isinstance(shown, OutputError) and shown.closed):
        print(f"error: {visible(error)}", file=sys.stderr)
    return error.exit_code


def _is_interrupt(error: BaseException | None) -> bool:
    """True if an interrupt caused the error, for example during an import."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _as_package_error(error: Exception) -> MechdesignError:
    """The error of this package for an exception: lack of memory, a file error, a failed problem file, or a defect."""
    if isinstance(error, MemoryError):
        return SizeError(f"does not fit in memory ({error})", field="size", remedy="ask for something smaller")
    if isinstance(error, OSError) and error.errno is not None:
        return FileFormatError(f"could not be used ({error.strerror or error})", field="file", value=error.filename)
    import os
    import traceback

    from mechdesign.problem.problem_files import MODULE, format_exception

    if os.environ.get("MECHDESIGN_TRACEBACK"):
        traceback.print_exception(error)
    # The innermost frame of this package is the place of the defect. A frame of a problem file is its author's error.
    place = ", line 0"
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__"))
        if name.startswith(MODULE):
            message = f"the problem file failed ({format_exception(error)})"
            return InputError(message, field="problem", value=frame.f_globals["__file__"])
        if name.startswith("mechdesign."):
            place = f"{name}, line {line}"
    remedy = "report this with the command; MECHDESIGN_TRACEBACK=1 prints the traceback"
    return InternalError(f"unexpected {format_exception(error)}", field="mechdesign", value=place, remedy=remedy)


if __name__ == "__main__":
    main()
