"""The command line: `main` runs a command, says in one line what went wrong, and leaves with an exit code.

| exit code | meaning |
|---|---|
| 0 | what was asked was done: a certified file was written or verified |
| 1 | the design or the verification failed, nothing uncertified was written; or what was to be said could not be |
| 2 | bad input: nothing was written |
| 130 | interrupted (Ctrl-C) |

With --json a command prints one JSON document on standard output, {"error": ...} where it fails; everything else goes
to standard error. A reader of standard output that goes away, as `head` does, ends a command with 1 and no message. An
exception that nothing foresaw is told in one line too, of kind "internal"; MECHDESIGN_TRACEBACK=1 shows where it was.

The commands are a file each, gathered in app.py. They are imported within `main`, so that an interrupt in start-up is
told like any other.
"""

from __future__ import annotations

import sys

from mechdesign.base.streams import guarded, visible
from mechdesign.errors import FileFormatError, InputError, InternalError, MechdesignError, OutputError, SizeError

INTERRUPTED = 130


def main() -> None:
    """Run the command line; errors become one line, or one JSON document with --json, and an exit code."""
    with guarded(sys.stdout, sys.stderr):
        try:
            code = _ended()
        except KeyboardInterrupt:
            code = _say_interrupted()
    sys.exit(code)


def _ended() -> int:
    """The exit code of the command, its errors told. Raises: KeyboardInterrupt where it was interrupted."""
    try:
        return _run()
    except MechdesignError as error:
        return _say(error)
    except Exception as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        return _say(_explained(error))


def _run() -> int:
    """Run the command that the command line names; its exit code. Raises whatever the command raises."""
    import typer

    from mechdesign.base.progress import progress
    from mechdesign.cli.app import command

    named = " ".join(word for word in sys.argv[1:3] if word.isalpha()) or "mechdesign"
    try:
        with progress(named, patient=True):
            code = command()(sys.argv[1:] or ["--help"], prog_name="mechdesign", standalone_mode=False)
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except typer.TyperException as error:
        raise InputError(error.format_message(), field=_option_of(error), remedy="see mechdesign --help") from error
    if code == INTERRUPTED:  # Typer makes this number of a KeyboardInterrupt, and says nothing
        raise KeyboardInterrupt
    if sys.stdout is not None:
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _option_of(error: Exception) -> str:
    named = getattr(error, "option_name", None) or getattr(getattr(error, "param", None), "name", None)
    return str(named or "command line")


def _say(error: MechdesignError) -> int:
    """Print an error; its exit code."""
    told: MechdesignError = error
    if "--json" in sys.argv and not isinstance(error, OutputError):
        import json

        try:
            print(json.dumps({"error": error.as_dict()}), flush=True)
            return error.exit_code
        except OutputError as unsaid:
            told = unsaid
    if sys.stderr is not None and not (isinstance(told, OutputError) and told.closed):
        print(f"error: {visible(error)}", file=sys.stderr)
    return error.exit_code


def _say_interrupted() -> int:
    kept = "; the --work folder keeps what was done: run it again" if "--work" in " ".join(sys.argv) else ""
    _say(MechdesignError("interrupted", field="run", remedy=f"no unfinished file is left{kept}"))
    return INTERRUPTED


def _interrupted(error: BaseException | None) -> bool:
    """Whether an interrupt led to the error, as where one comes in the middle of an import."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _explained(error: Exception) -> MechdesignError:
    """What to say of an exception of Python's: there is no memory, the operating system refuses a file (its name is too
    long, reading it fails), the problem file failed where it was at work, or this package has a defect.
    """
    if isinstance(error, MemoryError):
        return SizeError(f"does not fit in memory ({error})", field="size", remedy="ask for something smaller")
    if isinstance(error, OSError) and error.errno is not None:
        said = f"could not be used ({error.strerror or error})"
        return FileFormatError(said, field="file", value=error.filename, remedy="use another file")
    import os
    import traceback

    from mechdesign.setting.problems.problem_files import MODULE, described, failed

    if os.environ.get("MECHDESIGN_TRACEBACK"):
        traceback.print_exception(error)
    frames = [(frame.f_globals, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [(str(names.get("__name__")), line, names) for names, line in frames]
    for name, _, names in own:
        if name.startswith(MODULE):
            return failed(names["__file__"], error)
    name, line = next(((name, line) for name, line, _ in reversed(own) if name.startswith("mechdesign.")), ("", 0))
    return InternalError(
        f"unexpected {described(error)}",
        field="mechdesign",
        value=f"{name}, line {line}",
        remedy="report this, with the command; MECHDESIGN_TRACEBACK=1 shows where it comes from",
    )


if __name__ == "__main__":
    main()
