"""Runs command lines one after another in one process, for tests that stop it where a line takes too long.

A request is a line of JSON on standard input, {"words": [...], "encoding": "utf-8", "seconds": 20}; the answer one on
standard output, {"code": ..., "out": ..., "err": ...}. A line that takes more seconds of the processor ends the
process, whatever it is at; 0 is no limit. Memory is limited, and the system is said to have no more than the limit.
"""

from __future__ import annotations

import io
import json
import os
import resource
import runpy
import signal
import sys
from types import SimpleNamespace

import psutil

MEMORY = 2_000_000_000  # bytes that a line may take
START = 1_000_000_000  # bytes of addresses that the interpreter and its libraries take by themselves


def outcome(words: list[str], encoding: str) -> dict[str, object]:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2)]
    kept = sys.stdout, sys.stderr
    sys.argv = ["mechdesign", *words]
    sys.stdout, sys.stderr = streams
    code: object = "no exit code"
    try:
        runpy.run_module("mechdesign", run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        code = f"raised {type(error).__name__}: {error}"
    finally:
        sys.stdout, sys.stderr = kept
    out, err = (stream.buffer.getvalue().decode(encoding) for stream in streams)
    return {"code": code, "out": out, "err": err}


def main() -> None:
    requests, answers = sys.stdin, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of a library that bypasses Python is not an answer
    sys.stdin = io.StringIO()
    resource.setrlimit(resource.RLIMIT_AS, (START + MEMORY,) * 2)
    psutil.virtual_memory = lambda: SimpleNamespace(available=MEMORY, total=MEMORY)
    for line in requests:
        asked = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, asked["seconds"])
        answer = outcome(asked["words"], asked["encoding"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
