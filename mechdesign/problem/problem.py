"""DesignProblem, which every program and every closed form takes, and what builds one: problem files, words.

A problem file is a Python file whose function `problem(**parameters)` returns a DesignProblem. The keyword parameters
of that function, with their types and defaults, are those of the file. Files that come with the package are known by
name. A problem file is imported and called: it is a program of the designer's. What it prints goes to standard error.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.files import readable
from mechdesign.base.memory import require_memory
from mechdesign.base.numbers import real_number, whole_number
from mechdesign.base.records import ReprMixin
from mechdesign.base.validation import validated
from mechdesign.errors import InputError, MechdesignError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, shortest_paths
from mechdesign.problem.losses import (
    Loss,
    Query,
    QueryLoss,
    check_distance,
    check_loss,
    check_prior,
    named_loss,
    uniform,
)
from mechdesign.problem.metric import Discrete, Euclidean, Metric, check_storable
from mechdesign.problem.tables import read_places
from mechdesign.problem.text import Columns

Parameter = int | float | str
MODULE = "mechdesign_problem_"  # and its stem: the name of the module of a problem file
_SHOWN = 300  # characters of the message of an exception
_PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = (_PACKAGE / "_problems", _PACKAGE.parent / "problems")  # of shipped files: installed, or in a source tree
_READ: dict[type, Callable[[str], Parameter]] = {int: whole_number, float: real_number, str: str}
SETTINGS = {
    "euclidean": ("epsilon", "unit", "grid", "cell", "places", "reports", "loss"),
    "discrete": ("epsilon", "loss"),
}  # metric: its parameters


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignProblem(ReprMixin):
    """Secrets, what must be indistinguishable, who is likely, and what a report costs. Two of equal fields are equal.

    Parameters
    ----------
    domain : Domain
        The n secrets.
    metric : Metric
        The claim. A level per another unit of length is converted to that of the domain, and rounded down.
    prior : (n,) array
        Sums to 1.
    loss : Loss
        What a report costs.
    reports : Domain
        The m possible reports; the domain itself by default, and where its places are the same.
    query : Query
        Where the reports are its answers.
    matched_distance : float
        The expected distance, in units, to which a comparison tunes every mechanism; None to compare at the metric's
        own level.
    name : str
        Of the problem, kept in files.
    parameters : mapping
        What it was built from, kept in files.

    Notes
    -----
    Derived, computed once: edges, distances (n, n) in nats, loss_matrix and weighted_loss (n, m), prior times loss.

    Examples
    --------
    >>> domain = md.Domain.grid((4, 3), 0.5)
    >>> problem = md.DesignProblem(domain, md.Euclidean(1.5), md.priors.uniform(domain), md.losses.Distance())
    >>> round(float(problem.edges.length.max()), 2)
    2.7
    """

    domain: Domain = field(kw_only=False)
    metric: Metric = field(kw_only=False)
    prior: ArrayLike = field(kw_only=False)
    loss: Loss = field(kw_only=False)
    reports: Domain = field(default=None)  # type: ignore[assignment]
    query: Query | None = None
    matched_distance: float | None = None
    name: str = "problem"
    parameters: Mapping[str, int | float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A file tells by coordinates whether reports are the secrets, and symmetries and anchors of a bound rest on it.
        if self.reports is None or self.reports.same_places(self.domain):
            object.__setattr__(self, "reports", self.domain)
        object.__setattr__(self, "parameters", _plain_parameters(self.parameters))
        object.__setattr__(self, "prior", check_prior(self.prior, self.domain))
        object.__setattr__(self, "metric", self.metric.over(self.domain))
        check_storable(self.metric, self.domain)
        if not isinstance(getattr(self.loss, "name", None), str):
            message = f"{type(self.loss).__name__} needs a class attribute name, which files keep"
            raise InputError(message, field="loss", remedy='write name = "mine" in it, and md.extend.LOSSES["mine"]')
        if self.loss.code is not None:
            self.domain.require_alike(self.reports)
        else:  # of a class from outside, or a table: any number may stand in it
            self.loss_matrix  # noqa: B018
        if self.query is not None:
            self.query.check(self.domain, self.reports)
        if self.matched_distance is not None:
            object.__setattr__(self, "matched_distance", check_distance(self.matched_distance))

    @property
    def kept_parameters(self) -> dict[str, Parameter]:
        """The parameters as files keep them: JSON has no infinity, which is a text there."""
        kept = self.parameters.items()
        return {name: str(value) if value in (math.inf, -math.inf) else value for name, value in kept}

    @property
    def prior_array(self) -> NDArray[np.float64]:
        """The checked prior (n,)."""
        return np.asarray(self.prior, float)

    def facts(self) -> Mapping[str, object]:
        facts: dict[str, object] = {
            "name": self.name,
            "secrets": self.domain,
            "metric": self.metric,
            "loss": self.loss,
            "reports": None if self.reports is self.domain else self.reports,
            "query": self.query,
            "matched_distance": self.matched_distance,
            "parameters": self.parameters or None,
        }
        return {name: value for name, value in facts.items() if value is not None}

    @cached_property
    def edges(self) -> Edges:
        """The edges of the metric on the domain."""
        return self.metric.edges(self.domain)

    @cached_property
    def distances(self) -> NDArray[np.float64]:
        """d(u, u') in nats, (n, n)."""
        require_memory(self.domain.size, self.domain.size, tables=3, what="the distances between all secrets")
        return shortest_paths(self.edges, self.domain.size)

    @property
    def loss_matrix(self) -> NDArray[np.float64]:
        """l(u, y), (n, m), checked; computed at every call, because a search works on the cost and needs the room."""
        require_memory(self.domain.size, self.reports.size, tables=3, what="the table of losses")
        table = check_loss(self.loss.matrix(self.domain, self.reports))
        if table.shape != (self.domain.size, self.reports.size):
            raise InputError("must give a table over secrets and reports", field="loss", value=table.shape)
        return table

    @cached_property
    def weighted_loss(self) -> NDArray[np.float64]:
        """prior(u) l(u, y), (n, m): the expected loss of a table P is the sum of cost * P."""
        return self.prior_array[:, None] * self.loss_matrix

    @cached_property
    def anchors(self) -> NDArray[np.int64]:
        """For every report the secret it stands for: itself where reports are the secrets, else the cheapest secret."""
        if self.reports is self.domain:
            return np.arange(self.domain.size)
        return np.argmin(self.loss_matrix, axis=0)

    @property
    def constant_loss(self) -> float:
        """The expected loss of the best constant report: the scale that losses are measured against."""
        return float(self.weighted_loss[:, self.best_constant].sum())

    @cached_property
    def best_constant(self) -> int:
        """The report y with the least expected loss when it is made from everywhere."""
        return int(np.argmin(self.weighted_loss.sum(axis=0)))


def _plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Parameter]:
    """Parameters that a file can keep, those of NumPy as Python's. Raises: InputError for others."""
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in parameters.items()}
    for name, value in plain.items():
        if not (isinstance(name, str) and isinstance(value, (int, float, str)) and value == value):
            remedy = "use numbers and texts"
            raise InputError("cannot be kept in a file", field="parameters", value=f"{name}: {value!r}", remedy=remedy)
    return plain


@validated
def query_problem(
    *, domain: Domain, metric: Metric, prior: ArrayLike, query: Query | ArrayLike, loss: QueryLoss = "zero-one"
) -> DesignProblem:
    """The design problem whose reports are the answers of a query.

    Parameters
    ----------
    domain : Domain
        The n secrets.
    metric : Metric
        The claim.
    prior : (n,) array
        Sums to 1.
    query : Query or (n,) int array
        The query, or its labels.
    loss : {"zero-one", "distance"}
        See `Query.loss`.

    Returns
    -------
    DesignProblem
        Its m reports are the answers.

    Examples
    --------
    >>> domain = md.Domain.grid((4,), 1.0)
    >>> problem = md.losses.query_problem(
    ...     domain=domain, metric=md.Euclidean(1.0), prior=md.priors.uniform(domain), query=[0, 0, 1, 1]
    ... )
    >>> problem.reports.size
    2
    """
    query = query if isinstance(query, Query) else Query(labels=query)
    cost, reports = query.loss(loss, domain), query.reports(domain)
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=cost, reports=reports, query=query)


@dataclass(frozen=True, kw_only=True)
class ProblemFile(ReprMixin):
    """A problem file: its name, path, first docstring line, the module and the defaults of its parameters."""

    name: str
    path: Path
    summary: str
    module: ModuleType
    parameters: dict[str, Parameter]

    def build(self, /, **values: Parameter | str) -> DesignProblem:
        """The design problem for these parameters; strings are converted to the type of the default."""
        parameters = {**self.parameters, **{name: self._convert(name, value) for name, value in values.items()}}
        with redirect_stdout(sys.stderr):
            built = self.module.problem(**parameters)
        if not isinstance(built, DesignProblem):
            given_type = type(built).__name__
            raise InputError(
                "problem() must return a DesignProblem", field="problem", value=f"{self.path}: {given_type}"
            )
        return replace(built, name=self.name, parameters=parameters)

    def published(self, parameters: Mapping[str, Parameter]) -> dict[str, Parameter] | None:
        """The published figures that the file's `published()` returns for its parameters; None without one."""
        function = getattr(self.module, "published", None)
        if function is None:
            return None
        known = inspect.signature(function).parameters
        with redirect_stdout(sys.stderr):
            return dict(function(**{name: value for name, value in parameters.items() if name in known}))

    def remark(self, problem: DesignProblem) -> str | None:
        """The sentence of the file's `remark(problem)` on the figures of a solve; None without one."""
        function = getattr(self.module, "remark", None)
        with redirect_stdout(sys.stderr):
            return None if function is None else str(function(problem))

    def _convert(self, name: str, value: Parameter | str) -> Parameter:
        if name not in self.parameters:
            remedy = "use one of " + (", ".join(self.parameters) or "none")
            raise InputError(f"{self.name} has no such parameter", field=name, value=value, remedy=remedy)
        kind = type(self.parameters[name])
        try:
            converted = _READ[kind](value) if isinstance(value, str) else kind(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"must be of type {kind.__name__}: {error}", field=name, value=value) from error
        if kind in (int, float) and not isinstance(value, str) and converted != value:  # 5.5 for an int, or nan
            raise InputError(f"must be of type {kind.__name__}", field=name, value=value)
        return converted


@validated
def load_problem(name: str | Path, /, **parameters: Parameter | str) -> DesignProblem:
    """The design problem of a file, or of a shipped problem by name.

    Parameters
    ----------
    name : str or Path
        A problem file (.py) or the name of a shipped problem.
    **parameters : int, float or str
        Parameters of its `problem()`; texts are converted to the type of the default.

    Returns
    -------
    DesignProblem
        The problem.

    Raises
    ------
    InputError
        For an unknown name or parameter, and a file that is no problem.

    Examples
    --------
    >>> md.load_problem("line", cells=4).domain.size
    4
    """
    return read_problem_file(name).build(**parameters)


def read_problem_file(name: str | Path) -> ProblemFile:
    """Import a problem file, given by path or by the name of a shipped one."""
    path = _find(name)
    module = ModuleType(MODULE + path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        with redirect_stdout(sys.stderr):
            exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a program
    except MechdesignError:
        raise
    except Exception as error:
        del sys.modules[module.__name__]
        raise InputError(f"does not import ({described(error)})", field="problem", value=path) from error
    function = getattr(module, "problem", None)
    if not callable(function):
        raise InputError("has no function problem()", field="problem", value=path)
    parameters = {name: each.default for name, each in inspect.signature(function).parameters.items()}
    for name, default in parameters.items():
        if type(default) not in _READ or default != default:
            raise InputError("needs a default of type int, float or str", field=name, value=path)
    summary = (inspect.getdoc(module) or path.stem).splitlines()[0]
    return ProblemFile(name=path.stem, path=path, summary=summary, module=module, parameters=parameters)


def shipped_paths() -> dict[str, Path]:
    """The shipped files by name."""
    folder = next((f for f in FOLDERS if f.is_dir()), FOLDERS[0])
    return {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}


def shipped_problems() -> list[ProblemFile]:
    """The shipped problem files, by name, without those that import a capability that is not there."""
    files = []
    for path in shipped_paths().values():
        try:
            files.append(read_problem_file(path))
        except InputError as error:
            cause = error.__cause__
            if not (isinstance(cause, ModuleNotFoundError) and str(cause.name).startswith("mechdesign.")):
                raise
    return files


def described(error: BaseException) -> str:
    """The type of an exception and its message, cut where it is long."""
    message = str(error)
    return f"{type(error).__name__}: {message[:_SHOWN]}{'...' * (len(message) > _SHOWN)}"


def _find(name: str | Path) -> Path:
    if Path(name).suffix == ".py":
        with readable(name, "problem"):
            return Path(name).resolve(strict=True)
    shipped = shipped_paths()
    if str(name) not in shipped:
        remedy = "use one of " + ", ".join(shipped) + ", or the path of a .py file"
        raise InputError("no such problem", field="problem", value=name, remedy=remedy)
    return shipped[str(name)]


def named_problem(
    metric: str, parameters: Mapping[str, str], *, secrets: int, columns: Columns = None
) -> DesignProblem:
    """The problem of a metric with a uniform prior, for a table of `secrets` rows.

    euclidean: epsilon in nats per unit, unit, and either grid (AxB, AxBxC or A cells, the last axis fastest) with the
    cell size in that unit, or places, a CSV file with the coordinates of the secrets; reports, one with those of the
    reports, which are the secrets by default; loss, squared by default.
    discrete: epsilon in nats; loss, zero-one by default, with report k standing for secret k.
    """
    if metric not in SETTINGS:
        remedy = "use one of " + ", ".join(SETTINGS)
        raise InputError("unknown metric", field="metric", value=metric, remedy=remedy)
    claim: Metric
    if metric == "discrete":
        reports = domain = Domain.nodes(secrets)
        claim, loss = Discrete(epsilon=_number(parameters, "epsilon")), "zero-one"
    else:
        unit = _needed(parameters, "unit")
        reports = domain = _domain(parameters, unit, secrets, columns)
        if "reports" in parameters:
            reports = Domain.points_at(read_places(parameters["reports"], columns=columns), unit=unit)
        claim, loss = Euclidean(epsilon=_number(parameters, "epsilon"), unit=unit), "squared"
    return DesignProblem(
        domain=domain,
        metric=claim,
        prior=uniform(domain),
        loss=named_loss(parameters.get("loss", loss)),
        reports=reports,
        name=metric,
        parameters=parameters,
    )


def _domain(parameters: Mapping[str, str], unit: str, secrets: int, columns: Columns) -> Domain:
    options = {"grid", "cell", "places"} & set(parameters)
    if options == {"places"}:
        return Domain.points_at(read_places(parameters["places"], columns=columns), unit=unit)
    if options != {"grid", "cell"}:
        message = "the metric needs the places of the secrets: pass either --grid AxB --cell H or --places FILE.csv"
        raise InputError(message, field="grid" if options != {"grid"} else "cell", value=", ".join(parameters))
    grid = parameters["grid"]
    if re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9}){0,2}", grid) is None:
        raise InputError("must be cells per axis, such as 30x30", field="grid", value=grid)
    shape = [int(count) for count in grid.split("x")]
    if math.prod(shape) > max(secrets, 1):
        raise InputError(f"is of {math.prod(shape)} cells, for a table of {secrets} rows", field="grid", value=grid)
    return Domain.grid(shape, cell=_number(parameters, "cell"), unit=unit)


def _needed(parameters: Mapping[str, str], name: str) -> str:
    if name not in parameters:
        raise InputError(f"the metric needs --{name}", field=name, value="none")
    return parameters[name]


def _number(parameters: Mapping[str, str], name: str) -> float:
    word = _needed(parameters, name)
    try:
        return real_number(word)
    except ValueError as error:
        raise InputError(str(error), field=name, value=word) from error
