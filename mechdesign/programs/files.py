"""Programs of problem files."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from mechdesign.base.validation import validate_call
from mechdesign.problem.problem import Parameter
from mechdesign.problem.problem_files import read_problem_file
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program


@validate_call
def load_program(name: str | Path, /, **parameters: Parameter | str) -> Program:
    """The program of a problem file: the one that it returns, or the optimal program of its problem.

    Parameters
    ----------
    name, **parameters : str or Path; int, float or str
        As of `md.load_problem`.

    Returns
    -------
    Program

    Examples
    --------
    >>> md.programs.load_program("line", cells=4).name
    'optimal'
    """
    problem, program = read_problem_file(name).build_stated(**parameters)
    return Optimal(problem=problem) if program is None else cast(Program, program)
