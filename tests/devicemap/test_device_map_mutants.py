"""Device maps: the claim of a certified mutant is true, and only certified maps are drawn from."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from fixtures.device_maps import design, small_map
from fixtures.random_device_maps import content
from fixtures.rows import few_by_default
from reference.device_map import HALF, Reader

import mechdesign as md
from mechdesign import Sampler
from mechdesign.devicemap import DeviceMap
from mechdesign.errors import InputError, VerificationError


def change_place(name: str, place: tuple[int, int], by: int) -> DeviceMap:
    """The map with another level, potential or weight at one place."""
    values = getattr(small_map(), name).copy()
    values[place] += np.array(by).astype(values.dtype)
    return replace(small_map(), **{name: values})


def secret_place(place: tuple[int, int] = (2, 3)) -> tuple[int, int]:
    """A place among the secrets."""
    return small_map().margin + place[0], small_map().margin + place[1]


def reader_agrees(device_map: DeviceMap) -> bool:
    """True if every edge is covered and every sum is within its bound, by the reader in plain Python."""
    reader = Reader(content(device_map))
    sums = [reader.total(secret) for secret in range(device_map.secrets)]
    steps = HALF[: device_map.stencil // 2]
    edges = [(u, k) for u in range(device_map.secrets) for k in steps if reader.ends(u, k) is not None]
    covered = all(reader.is_covered(secret, step, sums) for secret, step in edges)
    return covered and all(total <= reader.bound(secret) <= 4 * total for secret, total in enumerate(sums))


MUTANTS = {
    "untouched": (small_map, True),
    "a level lower": (lambda: change_place("level", secret_place(), -1000), False),
    "a level higher": (lambda: change_place("level", secret_place(), 1), True),
    "a level much higher": (lambda: change_place("level", secret_place(), 9000), False),
    "a level of the margin": (lambda: change_place("level", (0, 0), 1000), True),
    "a potential": (lambda: change_place("potential", secret_place(), 1000), False),
    "a potential of 1 s": (lambda: change_place("potential", secret_place(), -1), None),
    "a weight": (lambda: change_place("weight", secret_place(), 64), False),
    "a weight by a sixteenth of an octave": (lambda: change_place("weight", (0, 0), -1), None),
    "a longer step": (lambda: replace(small_map(), step=small_map().step * 11 // 10), False),
    "a shorter step": (lambda: replace(small_map(), step=small_map().step * 9 // 10), None),
    "a step of 1": (lambda: replace(small_map(), step=1), None),
    "a larger grain": (lambda: replace(small_map(), grain=small_map().grain * 3), None),
    "a cap of the longest edge": (lambda: replace(small_map(), cap=int(small_map().factors.metric.units.max())), None),
    "a lower bound": (lambda: replace(small_map(), bound=(small_map().bound[0], small_map().bound[1] - 1)), False),
    "a higher bound": (lambda: replace(small_map(), bound=(small_map().bound[0], small_map().bound[1] + 1)), True),
    "a bound of four times the least": (
        lambda: replace(small_map(), bound=(small_map().bound[0], small_map().bound[1] + 2)),
        False,
    ),
    "a bound that no draw meets": (
        lambda: replace(small_map(), bound=(small_map().bound[0], small_map().bound[1] + 31)),
        False,
    ),
    "the least bound": (lambda: replace(small_map(), bound=(1 << 30, 0)), False),
    "half a cell": (lambda: replace(small_map(), cell=(0.5, 0.625)), False),
    "half a level": (lambda: replace(small_map(), level_unit=small_map().level_unit / 2), False),
}
BY_DEFAULT = ("a level lower", "a potential", "a lower bound")


@pytest.mark.parametrize("name", few_by_default(MUTANTS, *BY_DEFAULT))
@pytest.mark.obligation("device-map")
def test_certified_maps_are_private(name, tmp_path) -> None:
    mutant, expected = MUTANTS[name]
    device_map = mutant()
    path = tmp_path / "m.compact"
    path.write_bytes(content(device_map))
    found = md.verify(path)
    assert found.certified is (found.reasons == []) is reader_agrees(device_map)
    assert expected is None or found.certified is expected
    assert (found.claim == small_map().claim) is (device_map.claim_digest == small_map().claim_digest)
    if not found.certified:
        assert re.match("(potential|bound): [1-9][0-9]* ", found.reasons[0])


BEYOND = {
    "a step beyond the kernel": (lambda: replace(small_map(), step=1 << 53), "step"),
    "edges beyond 16 bits": (lambda: replace(small_map(), grain=small_map().grain // 3), "cap"),
    "a cap under the longest edge": (lambda: replace(small_map(), grain=1, cap=40_000), "cap"),
}


@pytest.mark.parametrize(("mutant", "field"), BEYOND.values(), ids=BEYOND)
@pytest.mark.obligation("device-map")
def test_impossible_kernel_numbers_are_refused(mutant, field) -> None:
    with pytest.raises(VerificationError) as error:
        md.verify(mutant())
    assert error.value.field == field


@pytest.mark.obligation("device-map")
def test_verification_figures_of_map() -> None:
    found, of_design = md.verify(small_map()), md.verify(design())
    assert found.certified
    assert found.violations == 0
    assert found.expected_loss is None
    assert found.edge_source == "levels of the map"
    assert 0.99 < found.ratio <= 1.0
    assert abs(found.ratio - of_design.ratio) < 0.01


@pytest.mark.obligation("device-map")
def test_only_certified_maps_are_sampled() -> None:
    with pytest.raises(VerificationError):
        md.devicemap.MapSampler(change_place("weight", secret_place(), 64))
    sampler = md.devicemap.MapSampler(small_map())
    drawn = sampler.sample([3, 22], 400, rng=1)
    assert drawn.dims == ("secret", "draw")
    assert drawn.attrs["claim"] == small_map().claim
    np.testing.assert_array_equal(drawn, sampler.sample([3, 22], 400, rng=1))
    points = small_map().domain.points
    np.testing.assert_array_equal(drawn["report_y"], points[drawn.values, 1])
    one = sampler.sample(at=points[22], size=5)
    assert one["secret_x"].values.tolist() == [points[22, 0]]
    for wrong in ({"secrets": [24]}, {"secrets": [-1]}, {"at": (0.0, 99.0)}, {}, {"secrets": 1, "at": (0.0, 4.0)}):
        with pytest.raises(InputError):
            sampler.sample(**wrong)


def test_rows_are_near_those_of_design() -> None:
    """The mean distance of 4,000 simulated reports against that of the design, to four standard errors, about 5 %."""
    points, size = small_map().domain.points, 4_000
    ours = md.devicemap.MapSampler(small_map()).sample([17], size, rng=3).values[0]
    theirs = Sampler(design()).sample([17], size, rng=4).values[0]
    apart = [np.linalg.norm(points[drawn] - points[17], axis=1) for drawn in (ours, theirs)]
    error = np.sqrt(sum(distances.var() / size for distances in apart))
    assert abs(apart[0].mean() - apart[1].mean()) < 4 * error + 0.02 * apart[1].mean()
