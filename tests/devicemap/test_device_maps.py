"""Device maps: the file, the formulas and the draw, against a reader in plain Python made from the documentation."""

from __future__ import annotations

import io
import json
import random
import zlib
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fixtures.device_maps import CELLS, design, forge_map, problem_of, short, small_map, with_digest
from fixtures.random_columns import every_sum
from fixtures.random_device_maps import content, drawing
from fixtures.rows import few_by_default
from reference.device_map import HALF, Reader

import mechdesign as md
from mechdesign.devicemap import load_device_map
from mechdesign.devicemap.device_map import bounds, least_bound
from mechdesign.devicemap.files import unpack
from mechdesign.errors import MechdesignError, VerificationError
from mechdesign.geo import Plane

STENCIL = pytest.mark.parametrize("stencil", few_by_default([8, 16], 16))
ARRAYS = ("level", "potential", "weight")


def test_map_file_round_trips_in_five_bytes_a_place(tmp_path) -> None:
    device_map = small_map()
    path = md.export(design(), tmp_path / "slope.compact")
    file = path.read_bytes()
    size = int.from_bytes(file[12:16], "little")
    assert len(zlib.decompress(file[16 + size : -32])) == 5 * np.prod(device_map.shape)
    again = load_device_map(path)
    assert content(again) == file
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(again, name), getattr(device_map, name))


def test_map_on_earth_states_plane() -> None:
    plane = Plane(latitude=40.5, longitude=-74.9, unit="km")
    device_map = replace(small_map(), plane=plane, unit="km")
    again = unpack(content(device_map))
    assert again.plane == plane
    assert "about 40.5 N 74.9 W" in again.claim
    plane_header = device_map.header()["plane"]
    assert (plane_header["latitude"], plane_header["longitude"], plane_header["metres"]) == (40.5, -74.9, 1000.0)
    assert device_map.claim_digest != small_map().claim_digest


@STENCIL
def test_reference_reader_finds_same_rows(stencil: int) -> None:
    device_map = small_map(stencil)
    reader, sums = Reader(content(device_map)), every_sum(device_map.factors)
    assert sums == [reader.total(secret) for secret in range(device_map.secrets)]
    potential = device_map.potential.ravel()[device_map.inner]
    assert bounds(device_map.bound, potential) == [reader.bound(secret) for secret in range(device_map.secrets)]
    edges = [(secret, step) for secret in range(device_map.secrets) for step in HALF[: stencil // 2]]
    inside = [(secret, step) for secret, step in edges if reader.ends(secret, step) is not None]
    assert len(inside) == len(device_map.edges.tail)
    assert all(reader.is_covered(secret, step, sums) for secret, step in inside)
    assert device_map.factors.breaches(device_map.edges, sums) == 0
    assert device_map.bound_violations(sums) == (0, 0)


def test_balls_follow_documented_order() -> None:
    device_map = short()
    reader, draws = Reader(content(device_map)), drawing(device_map)
    for secret in (0, 11, 20, device_map.secrets - 1):
        ball = draws.row_order(secret)
        assert ball.places.tolist() == [place for _, place in reader.ball(secret)]
        assert ball.total == reader.total(secret) <= reader.bound(secret)
        assert len(ball.places) < np.prod(device_map.shape) // 2


@STENCIL
def test_lengths_are_line_integrals_rounded_down(stencil: int) -> None:
    """By Simpson's rule in fractions on each half of a step: exact, since eps is quadratic there."""
    device_map = small_map(stencil)
    unit, sides = Fraction(device_map.level_unit), [Fraction(side) for side in device_map.cell]
    level = device_map.level.astype(object)

    def eps(point: tuple[Fraction, Fraction]) -> Fraction:
        i, j = (min(int(x), count - 2) for x, count in zip(point, device_map.shape, strict=True))
        a, b = point[0] - i, point[1] - j
        lower, upper = (level[k, j] * (1 - b) + level[k, j + 1] * b for k in (i, i + 1))
        return unit * (lower * (1 - a) + upper * a)

    for (a, b), (origin, _, length) in zip(HALF, device_map.edges_by_step(), strict=False):
        square = (a * sides[0]) ** 2 + (b * sides[1]) ** 2
        for place, found in zip(origin.tolist()[::7], length.tolist()[::7], strict=True):
            start = divmod(place, device_map.shape[1])
            points = [(start[0] + Fraction(a * k, 4), start[1] + Fraction(b * k, 4)) for k in range(5)]
            mean = sum(c * eps(point) for c, point in zip((1, 4, 2, 4, 1), points, strict=True)) / 12
            assert found**2 <= (mean * 2**48) ** 2 * square < (found + 2**21) ** 2


@pytest.mark.parametrize("aligned", [True, False])
def test_no_edge_is_longer_than_in_design(aligned: bool) -> None:
    device_map, claimed = small_map(aligned=aligned), problem_of(aligned=aligned).edges
    key, wanted = (edges.tail * device_map.secrets + edges.head for edges in (device_map.edges, claimed))
    np.testing.assert_array_equal(np.sort(key), np.sort(wanted))
    shorter = claimed.length[np.argsort(wanted)] - device_map.edges.length[np.argsort(key)]
    assert shorter.min() >= 0
    if aligned:
        assert (shorter / device_map.edges.length[np.argsort(key)]).max() < 2e-4


def test_draws_follow_documented_rule() -> None:
    device_map = short()
    reader, draws = Reader(content(device_map)), drawing(device_map)
    for secret in (3, 17):
        ours, theirs = random.Random(secret), random.Random(secret)
        drawn = draws.places(secret, 20, ours.randbytes)
        assert drawn == [reader.draw(secret, theirs.randbytes) for _ in drawn]
        assert device_map.target[drawn].tolist() == [reader.report(place) for place in drawn]


def test_draws_at_ends_of_intervals() -> None:
    """The last number of the ball, the first of the floor, its last; after rounds that draw S, or the bound or more."""
    device_map = short()
    reader, draws = Reader(content(device_map)), drawing(device_map)
    ball = draws.row_order(0)
    bound, last = reader.bound(0), ball.sums[-1]
    dropped_bits = 128 - bound.bit_length()
    far = np.prod(device_map.shape) - 1
    for number, place in {0: ball.places[0], last - 1: ball.places[-1], last: 0, ball.total - 1: far}.items():
        for before in ((), (ball.total,), (bound - 1, ball.total), (bound,)):
            rounds = [*before, number]
            ours, theirs = (
                io.BytesIO(b"".join((n << dropped_bits).to_bytes(16, "little") for n in rounds)) for _ in "ab"
            )
            assert draws.places(0, 1, ours.read) == [place]
            assert reader.draw(0, theirs.read) == place
            assert ours.read() == theirs.read() == b""


def test_least_bound_is_certified() -> None:
    device_map = small_map()
    sums, potential = every_sum(device_map.factors), device_map.potential.ravel()[device_map.inner]
    assert device_map.bound == least_bound(potential, sums)
    for scale in (2**-60, 2**-40, 2**-40 + 2**-42, 2**20):
        over = [1 + int(Fraction(scale) * s) for s in sums]
        bound = least_bound(potential, over)
        assert all(s <= b for s, b in zip(over, bounds(bound, potential), strict=True))
        smaller = bounds((bound[0] - bound[0] // 2**19, bound[1]), potential)
        assert bound == (1 << 30, 0) or any(s > b for s, b in zip(over, smaller, strict=True))


@pytest.mark.obligation("device-map")
def test_changed_byte_is_refused() -> None:
    honest = content(small_map())
    for place in range(0, len(honest), 41):
        changed = bytearray(honest)
        changed[place] ^= 1 << place % 8
        with pytest.raises(VerificationError):
            unpack(bytes(changed))


WRONG = {
    "cut": lambda: content(small_map())[:-1],
    "empty": lambda: b"",
    "magic alone": lambda: with_digest(b"mechdesign"),
    "another version": lambda: with_digest(b"mechdesign" + bytes([2, 0]) + content(small_map())[12:-32]),
    "header longer than the file": lambda: with_digest(b"mechdesign" + bytes([1, 0]) + b"\xff" * 4 + b"{}"),
    "no JSON": lambda: with_digest(b"mechdesign" + bytes([1, 0, 2, 0, 0, 0]) + b"{,"),
    "nested": lambda: with_digest(b"mechdesign" + bytes([1, 0, 0, 255, 0, 0]) + b"[" * 65280),
    "no body": lambda: forge_map(body=b""),
    "short body": lambda: forge_map(body=zlib.compress(bytes(10))),
    "long body": lambda: forge_map(body=zlib.compress(bytes(10**6))),
    "more behind the body": lambda: forge_map(body=zlib.compress(bytes(5 * np.prod(small_map().shape))) + b"x"),
    "levels of 0": lambda: forge_map(body=zlib.compress(bytes(5 * np.prod(small_map().shape)))),
}
HUGE = (0, -1, 2**24, 2**31, 2**54, 2**63, 2**64, 10**400, 1.5, True, None, "7", [], {}, float("nan"), float("inf"))


@pytest.mark.parametrize("file", WRONG.values(), ids=WRONG)
@pytest.mark.obligation("device-map")
def test_invalid_map_is_refused(file) -> None:
    with pytest.raises(VerificationError):
        unpack(file())


def _header_paths() -> list[tuple[str, ...]]:
    header = small_map().header()
    return [
        *((name,) for name in sorted(header)),
        *((name, k) for name in sorted(header) for k in _keys_of(header[name])),
    ]


def _keys_of(value: object) -> range | list[str]:
    return range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else []


@pytest.mark.obligation("device-map")
def test_changed_header_value_is_refused() -> None:
    """Every field, list element and text of the header in turn; an added key, a missing key, and numbers of every size.

    Only grain, step, cap and bound do not follow from the rest: `verify` checks them by the claim.
    """
    for path in _header_paths():
        for value in HUGE:

            def change(header, path=path, value=value):
                part = header
                for name in path[:-1]:
                    part = part[name]
                part[path[-1]] = value

            file = forge_map(change)
            if path[0] in ("bound", "grain", "about") or file == content(small_map()):
                try:
                    unpack(file)
                except VerificationError:
                    continue
                assert path in (("bound", 1), ("grain",), ("about", "problem"), ("about", "program"))
                continue
            with pytest.raises(VerificationError):
                unpack(file)
    for change in (
        lambda header: header.update(more=1),
        lambda header: header.pop("cap"),
        lambda header: header.update(margin=0),
    ):
        with pytest.raises(VerificationError):
            unpack(forge_map(change))


def test_unsuitable_designs_are_refused(tmp_path) -> None:
    with pytest.raises(MechdesignError, match="neighbours"):
        md.export(design(4), tmp_path / "slope.compact")


def test_map_names_its_source() -> None:
    header = json.loads(json.dumps(small_map().header()))
    assert header["source_sha256"] == design().attrs["sha256"]
    assert f"{CELLS[0]} x {CELLS[1]} grid" in header["claim"]
    assert header["claim_digest"][:16] in header["claim"]
