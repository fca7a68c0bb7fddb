"""Mutations of small files: any attribute, variable, dtype, dimension or size, alone or several at once.

A `Draft` is a file taken apart, every row of `MUTATIONS` changes something in it at random, and half of the drafts are
made consistent again (tests/consistent.py), so that they reach the checks behind the first one. All are sealed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
import xarray as xr
from columns import other_generators
from consistent import remade
from drafts import Draft
from false_bounds import in_doubles, noise
from kinds import FACTORED, KINDS, made
from limited import LIMITS, change

from mechdesign.mechanism.claim import MechanismFile
from mechdesign.positions import Positions

_WORDS = (
    *("km", "m", "cell", "1", "degree", "USD", "metres", "nan", "0", "-1", "1e400", "edge", "secret", "report"),
    *("nodes", "points", "grid", "graph", "euclidean", "discrete", "streets", "eikonal", "own_constraints"),
    *("squared", "distance", "zero-one", "table", "optimal", "minimax", "robust", "bounded", "constrained"),
)
_WHOLE = (0, 1, 2, 7, 8, 255, 8192, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**48, 40 * 2**48, 2**51, 2**53, 2**62)
_HUGE = (2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**400)
_REAL = (0.0, -0.0, 0.5, 1.0, 2.0, 1e-9, 1e-162, 5e-324, 1e9, 2.0**53, 1e154, 1e300, math.inf, -math.inf, math.nan)
_FACTORS = (-1.0, 0.0, 0.1, 0.5, 0.99, 1 - 1e-9, 1 - 1e-12, 1 + 4.9e-12, 1 + 1e-9, 1 + 1e-6, 1.01, 2.0, 1e-160, 1e160)
_DTYPES = (
    *("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">u8", ">i8", ">f8", "g", "c16", "?"),
    *("U8", "S8", "O", "M8[ns]", "m8[ns]"),
)
_IMPOSSIBLE = (LookupError, ValueError, TypeError, OverflowError)  # of a number, or after another mutation
_SELDOM = (
    *("objective", "lower_bound", "scale", "remapped_loss", "problem_metric", "claimed_epsilon"),
    *("own", "units", "_FillValue"),
)


@dataclass(frozen=True)
class Mutant:
    """A mutated file and what was done to it."""

    dataset: xr.Dataset
    history: tuple[str, ...]


def mutant(kind: str, number: int) -> Mutant:
    """Mutant `number` of the honest file of a kind, always the same."""
    random = Random(f"{kind} {number}")
    draft, history = Draft.of(kind, made(kind)), []
    factored = kind in FACTORED
    rows = [name for name in (*MUTATIONS, *_OFTEN) if _ONLY.get(name, factored) == factored]
    rows = [*rows, *rows, *(("limit",) * len(rows))] if kind in LIMITS else rows
    consistent = random.random() < 0.5
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice(rows)
        history.append(name)
        try:
            (_limit if name == "limit" else MUTATIONS[name])(draft, random)
        except _IMPOSSIBLE as error:
            history[-1] += f" ({type(error).__name__})"
    if consistent:
        history.append(remade(draft, random))
    try:
        return Mutant(dataset=draft.dataset(), history=tuple(history))
    except ValueError:  # names and dimensions that xarray does not take together
        return Mutant(dataset=made(kind), history=(*history, "no Dataset"))


def number(value: float, random: Random) -> Any:
    """Another number, near or far, or another type."""
    ways = [
        lambda: value * random.choice(_FACTORS),
        lambda: random.choice(_REAL),
        lambda: random.choice((1, -1)) * random.choice(_WHOLE + _HUGE),
        lambda: random.choice((str(value), bool(value), [value], int(value), float(value))),
    ]
    if isinstance(value, float):
        ways += [lambda: math.nextafter(value, math.inf), lambda: math.nextafter(value, -math.inf)] * 2
    else:
        ways += [lambda: value + random.choice((-1, 1)), lambda: value * 2 ** random.randrange(64)] * 2
    return random.choice(ways)()


def text(value: str, random: Random) -> str:
    """Another text: a digit or a word changed, a character lost or doubled."""
    at = random.randrange(max(len(value), 1))
    digits = [i for i, c in enumerate(value) if c.isdigit()]
    words = value.split()
    if digits and random.random() < 0.5:
        i = random.choice(digits)
        return value[:i] + random.choice("0123456789") + value[i + 1 :]
    if len(words) > 1 and random.random() < 0.5:
        words[random.randrange(len(words))] = random.choice(_WORDS)
        return " ".join(words)
    return random.choice(
        (value[:at] + value[at + 1 :], value[:at] + value[at:][:1] + value[at:], random.choice(_WORDS))
    )


def _attribute(draft: Draft, random: Random) -> None:
    name = random.choice(sorted(draft.attrs))
    value = draft.attrs[name]
    draft.attrs[name] = text(value, random) if isinstance(value, str) else number(value, random)


def _attribute_lost(draft: Draft, random: Random) -> None:
    del draft.attrs[random.choice(sorted(draft.attrs))]


def _attribute_added(draft: Draft, random: Random) -> None:
    name = random.choice(_SELDOM)
    draft.attrs[name] = random.choice((*_REAL, *_WHOLE, *_WORDS, draft.attrs["metric"]))


def _attribute_of_another(draft: Draft, random: Random) -> None:
    other = made(random.choice(list(KINDS))).attrs
    name = random.choice(sorted(other))
    draft.attrs[name] = other[name]


def _json(draft: Draft, random: Random) -> None:
    name = random.choice(("metric", "metric", "domain", "domain", "parameters", "versions"))
    whole = json.loads(draft.attrs[name])
    place = whole
    while True:
        key = random.choice(sorted(place) if isinstance(place, dict) else range(len(place)))
        if not isinstance(place[key], (dict, list)) or not place[key] or random.random() < 0.1:
            break
        place = place[key]
    _leaf(place, key, random)
    draft.attrs[name] = json.dumps(whole)
    if random.random() < 0.03:  # a name said twice, the last one otherwise
        draft.attrs[name] = draft.attrs[name][:-1] + f', "{random.choice(sorted(whole))}": {random.choice(_WHOLE)}}}'


def _leaf(place: Any, key: Any, random: Random) -> None:
    value, chance = place[key], random.random()
    if chance < 0.08:
        del place[key]
    elif chance < 0.12 and isinstance(place, dict):
        place[random.choice(_WORDS)] = value
    elif chance < 0.16 and isinstance(place, list):
        place.insert(key, value)
    elif chance < 0.2:
        place[key] = random.choice((None, [], {}, [value], {"x": value}, True))
    elif isinstance(value, (int, float)):
        place[key] = number(value, random)
    elif isinstance(value, str):
        place[key] = text(value, random)


def _limit(draft: Draft, random: Random) -> None:
    """A limit on discs, and with it the bound, which is of tables that keep it."""
    parameters = json.loads(draft.attrs["parameters"])
    change(random.choice(parameters["constraints"]), random, exported=False)
    draft.attrs["parameters"] = json.dumps(parameters)
    if random.random() < 0.5:
        draft.attrs.pop("lower_bound", None)


def _multiplier(draft: Draft, random: Random) -> None:
    """The factor of the claim, and with it what the file says of it."""
    factor = random.choice((1 + 4.9e-12, 1 + 1e-13, 1 - 1e-13, 1 - 1e-9, 1 + 1e-9, 0.9, 1.1, 2.0, 0.0, 1e-300, 1e300))
    metric = json.loads(draft.attrs["metric"])
    name = random.choice([key for key in ("multiplier", "epsilon") if key in metric])
    metric[name] *= factor
    draft.attrs["metric"] = json.dumps(metric, sort_keys=True)
    if random.random() < 0.5:
        draft.attrs["scale"] *= factor
        draft.attrs["ratio"] *= factor


def _variable(draft: Draft, random: Random, among: str = "iuf") -> str:
    return random.choice([name for name, (_, array, _) in draft.variables.items() if array.dtype.kind in among])


def _entry(draft: Draft, random: Random) -> None:
    name = _variable(draft, random)
    values = draft.variables[name][1].copy()
    at = random.randrange(values.size)
    whole = values.dtype.kind in "iu"
    ends = (np.iinfo(values.dtype).min, np.iinfo(values.dtype).max) if whole else ()
    one = number(values.ravel()[at].item(), random) if random.random() < 0.7 else random.choice((*ends, *_sizes(draft)))
    values.ravel()[at] = one if not whole or isinstance(one, list) else int(one)
    draft.put(name, values)


def _sizes(draft: Draft) -> list[int]:
    """The sizes of the dimensions, and one less: numbers that indices must stay under."""
    sizes = {k for _, array, _ in draft.variables.values() for k in array.shape}
    return sorted(sizes | {k - 1 for k in sizes})


def _exchanged(draft: Draft, random: Random) -> None:
    name = _variable(draft, random)
    values = draft.variables[name][1].copy()
    a, b = random.randrange(values.size), random.randrange(values.size)
    values.ravel()[[a, b]] = values.ravel()[[b, a]]
    draft.put(name, values)


def _shuffled(draft: Draft, random: Random) -> None:
    name = _variable(draft, random)
    values = draft.variables[name][1].copy()
    order = list(range(len(values)))
    random.shuffle(order)
    draft.put(name, values[order])


def _scaled(draft: Draft, random: Random) -> None:
    name = _variable(draft, random)
    values = draft.variables[name][1]
    with np.errstate(all="ignore"):
        draft.put(name, (values * random.choice(_FACTORS)).astype(values.dtype))


def _moved(draft: Draft, random: Random) -> None:
    """Mass moved within a row: its sum stays."""
    values = draft.variables["mass"][1].copy()
    row = values[random.randrange(len(values))]
    a, b = random.sample(range(len(row)), 2)
    amount = min(int(row[a]) - 1, random.choice((1, 2, 1000, int(row[a]) >> random.randrange(1, 60))))
    row[a], row[b] = int(row[a]) - amount, int(row[b]) + amount
    draft.put("mass", values)


def _lost(draft: Draft, random: Random) -> None:
    del draft.variables[_variable(draft, random)]


def _renamed(draft: Draft, random: Random) -> None:
    name = _variable(draft, random)
    other = random.choice((*draft.variables, "other", "dual", "level", "multiplier", "loss_table", "secret", "edge"))
    draft.variables[other] = draft.variables[name] if random.random() < 0.3 else draft.variables.pop(name)


def _of_another(draft: Draft, random: Random) -> None:
    other = made(random.choice(list(KINDS)))
    name = str(random.choice(list(other.variables)))
    draft.take(other[[name]].reset_coords(drop=True) if name in other.data_vars else other[name].to_dataset(name=name))


def _units(draft: Draft, random: Random) -> None:
    attrs = draft.variables[_variable(draft, random)][2]
    attrs[random.choice(("units", "units", "scale_factor", "_FillValue"))] = random.choice((*_WORDS, 2.0, 0))


def _typed(draft: Draft, random: Random) -> None:
    name = _variable(draft, random)
    with np.errstate(all="ignore"):
        draft.put(name, draft.variables[name][1].astype(random.choice(_DTYPES)))


def _redimensioned(draft: Draft, random: Random) -> None:
    name = _variable(draft, random)
    dims, values, _ = draft.variables[name]
    known = sorted({dim for other, _, _ in draft.variables.values() for dim in other})
    way = random.randrange(4)
    if way == 0:
        draft.put(name, dims=tuple(random.choice((*known, "other")) for _ in dims))
    elif way == 1:
        other = random.choice([n for n, (d, _, _) in draft.variables.items() if len(d) == len(dims)])
        draft.put(other, dims=draft.variables[name][0])
        draft.put(name, dims=draft.variables[other][0])
    elif way == 2:
        draft.put(name, values.T.copy(), dims=dims if random.random() < 0.5 else dims[::-1])
    else:
        draft.put(name, values[..., None], dims=(*dims, "other"))


def _resized(draft: Draft, random: Random) -> None:
    """One variable cut short or made longer; what it was over may stay its name."""
    name = _variable(draft, random)
    dims, values, _ = draft.variables[name]
    if random.random() < 0.5:
        values = values[: random.randrange(len(values) + 1)].copy()
    else:
        values = np.concatenate([values, values[: random.randrange(1, len(values) + 1)]])
    draft.put(name, values)
    if random.random() < 0.5:
        draft.put(name, dims=(f"{dims[0]}_other", *dims[1:]))


def _selected(draft: Draft, random: Random) -> None:
    """A dimension of the whole file: cut, turned, doubled or shuffled."""
    sizes = {dim: k for dims, array, _ in draft.variables.values() for dim, k in zip(dims, array.shape, strict=False)}
    dim = random.choice(sorted(sizes))
    everything = list(range(sizes[dim]))
    shuffled = random.sample(everything, len(everything))
    kept = random.choice(
        (everything[1:], everything[:-1], everything[::-1], everything * 2, shuffled, everything[:1], [])
    )
    for name, (dims, values, _) in list(draft.variables.items()):
        if dim in dims and values.shape[dims.index(dim)] == sizes[dim]:
            draft.put(name, np.take(values, np.array(kept, int), axis=dims.index(dim)))


def _bound(draft: Draft, random: Random) -> None:
    """Multipliers and bound of the same program at another level, and the factor of the claim with them."""
    level = random.choice((0.5, 2.0))
    other = made(draft.kind, level)
    for name in ("dual", "multiplier"):
        if name in other:
            draft.put(name, other[name].values)
    draft.attrs["lower_bound"] = other.attrs["lower_bound"]
    if random.random() < 0.7:
        metric = json.loads(draft.attrs["metric"])
        metric["multiplier"] *= random.choice((level, 1 / level))
        draft.attrs["metric"] = json.dumps(metric, sort_keys=True)


def _bound_of_positions(draft: Draft, random: Random) -> None:
    """Multipliers of any size, at levels next to nothing too, and the bound that sums in doubles make of them."""
    if draft.attrs.get("program") != "positions" or "corner_level" not in draft.variables:
        raise ValueError("no design between positions")
    honest, factor = MechanismFile.read(made(draft.kind)), random.choice((1.0, 0.5, 1e-6, 1e-12, 1e-25))
    problem, level = honest.problem, draft.variables["corner_level"][1]
    if factor != 1 and level.shape == (problem.domain.size, 4):
        draft.put("corner_level", level * factor)
    program = Positions(replace(problem, metric=honest.problem_metric), corner_level=draft.variables["corner_level"][1])
    seed = random.getrandbits(32)
    multipliers = noise(program, random.uniform(0.5, 3.0) * draft.attrs["objective"], tries=200, seed=seed)
    if random.random() < 0.3:
        multipliers = draft.variables["multiplier"][1] * random.choice((*_FACTORS, 1.001, 1.1))
    draft.put("multiplier", multipliers)
    draft.attrs["lower_bound"] = in_doubles(program, multipliers)


def _own_constraints(draft: Draft, random: Random) -> None:
    """Constraints that a file cannot hold, which nobody asked for, and a bound that is nearly what it bounds."""
    parameters = json.loads(draft.attrs["parameters"])
    parameters["own_constraints"] = random.choice((["P[0, 0] <= 1"], True, 1, "", [], {"x": 1}))
    draft.attrs["parameters"] = json.dumps(parameters)
    if random.random() < 0.3:
        draft.attrs["program"] = "constrained"
    most = draft.attrs.get("objective", draft.attrs.get("expected_loss", 1.0))
    draft.attrs["lower_bound"] = most * random.choice((1.0, 0.999, 0.9, 0.5))


def _wrapping(draft: Draft, random: Random) -> None:
    """A step and units whose product is a multiple of 2^64, or close to one."""
    units = random.choice((2**13, 2**14, 2**15))
    dims, values, attrs = draft.variables["edge_units"]
    draft.variables["edge_units"] = (dims, np.full_like(values, units), attrs)
    draft.attrs["step"] = random.choice((40, 32, 24, 8)) * 2**48 + random.choice((0, 0, 1, -1, 2**40))
    draft.attrs["cap"] = 1


def _step(draft: Draft, random: Random) -> None:
    """A smaller step, with which the certificate has room for other weights, or a larger one, with which it breaks."""
    draft.attrs["step"] = int(draft.attrs["step"] * random.choice((0.3, 0.49, 0.9, 0.999, 1.0001, 1.1, 2.0)))


def _weights(draft: Draft, random: Random) -> None:
    """Other weights in their range, a few places or all of them."""
    weight = draft.variables["weight"][1].copy()
    for place in random.sample(range(len(weight)), random.choice((1, 2, len(weight)))):
        weight[place] = random.choice((1, 2**28, random.randrange(1, 2**28 + 1)))
    draft.put("weight", weight)


MUTATIONS: dict[str, Callable[[Draft, Random], None]] = {
    "attribute": _attribute,
    "attribute lost": _attribute_lost,
    "attribute added": _attribute_added,
    "attribute of another file": _attribute_of_another,
    "leaf": _json,
    "multiplier": _multiplier,
    "entry": _entry,
    "exchanged": _exchanged,
    "shuffled": _shuffled,
    "scaled": _scaled,
    "moved": _moved,
    "lost": _lost,
    "renamed": _renamed,
    "of another file": _of_another,
    "units": _units,
    "typed": _typed,
    "redimensioned": _redimensioned,
    "resized": _resized,
    "selected": _selected,
    "bound of another level": _bound,
    "bound of positions": _bound_of_positions,
    "own constraints": _own_constraints,
    "wrapping": _wrapping,
    "step": _step,
    "weights": _weights,
    "generators": other_generators,
}
_OFTEN = ("leaf", "leaf", "leaf", "entry", "entry", "attribute", "multiplier", "moved", "step", "weights", "generators")
_ONLY = {
    "moved": False,
    "bound of another level": False,
    "bound of positions": False,
    "own constraints": False,
    "wrapping": True,
    "step": True,
    "weights": True,
    "generators": True,
}  # factored files or tables
