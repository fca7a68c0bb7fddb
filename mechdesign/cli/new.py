"""`mechdesign new`: write a problem file to start from."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import JsonOption, OverwriteOption

_MAP = '''"""{name}: reports of places on a grid, near places hard to distinguish."""

import mechdesign as md


def problem(cells: int = 8, cell: float = 250.0, epsilon: float = 0.004):
    """Parameters: cells a side; cell in m; epsilon in nats per m."""
    domain = md.Domain.grid((cells, cells), cell=cell, unit="m")
    prior = md.priors.uniform(domain)  # yours: md.priors.proportional(people), of shape (cells, cells), x first
    return md.DesignProblem(domain, md.Euclidean(epsilon, unit="m"), prior, md.losses.Distance())
'''
_CLASSES = '''"""{name}: answers to a question, any two of them hard to distinguish."""

import mechdesign as md

ANSWERS = ["yes", "no", "don\'t know"]


def problem(epsilon: float = 1.1):
    """Parameters: epsilon in nats; one report changes the odds of two answers by a factor of at most e^epsilon."""
    domain = md.Domain.classes(ANSWERS)
    prior = {{"yes": 0.5, "no": 0.3, "don\'t know": 0.2}}  # yours, for example from an earlier survey
    return md.DesignProblem(domain, md.Discrete(epsilon), prior, md.losses.ZeroOne())
'''
_PROGRAM = '''"""{name}: the optimal program with constraints of its own."""

import cvxpy as cp

import mechdesign as md


def problem(cells: int = 6, epsilon: float = 1.0, guess: float = 0.4):
    """Parameters: cells of a line; epsilon in nats per cell; guess, the largest probability of a right guess."""
    domain = md.Domain.grid(cells, cell=1.0, unit="cell")
    metric = md.Euclidean(epsilon, unit="cell")
    stated = md.DesignProblem(domain, metric, md.priors.uniform(domain), md.losses.Distance())

    def limit(table):
        """table: the cvxpy variable P(y|u), a row for each secret."""
        weighted = cp.multiply(stated.prior_array[:, None], table)
        return [cp.sum(cp.max(weighted, axis=0)) <= guess]

    return md.programs.Constrained(stated, constraints=[limit])
'''
TEMPLATES = {"map": _MAP, "classes": _CLASSES, "program": _PROGRAM}
_KIND_HELP = "The problem: " + ", ".join(TEMPLATES) + "."


def new(
    name: Annotated[str, typer.Argument(help="Name of the problem, or its file, such as mine.py.")],
    kind: Annotated[str, typer.Option("--kind", help=_KIND_HELP)] = "map",
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign new mine`.

    Write a problem file to start from: places, answers to a question, or a program of your own.
    """
    from mechdesign.base.atomic_write import check_target, write_atomically
    from mechdesign.errors import InputError
    from mechdesign.output.text_tables import show

    if kind not in TEMPLATES:
        raise InputError("unknown kind", field="kind", value=kind, remedy="use one of " + ", ".join(TEMPLATES))
    path = Path(name)
    path = path if path.suffix else path.with_suffix(".py")
    if path.suffix != ".py" or not path.stem.isidentifier() or keyword.iskeyword(path.stem):
        raise InputError("must be a name of Python, such as mine", field="name", value=name)
    target = check_target(path, overwrite=overwrite)
    text = TEMPLATES[kind].format(name=path.stem)
    write_atomically(target, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))
    words = [f"wrote {path}", f"Next: mechdesign solve {path} -o {path.stem}.nc"]
    show({"file": str(path), "kind": kind}, words, as_json=as_json)
