"""Containers: every type comes back, and only arrays that the header of a kind declares are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures.device_maps import with_digest

from mechdesign.errors import VerificationError
from mechdesign.mechanism.container import is_container, pack_container, unpack_container

SHAPES = {"u1": (7,), "u2": (3, 5), "u4": (4,), "u8": (2, 3), "i2": (5, 2), "f8": (3, 1, 2)}


def arrays() -> dict[str, np.ndarray]:
    bits = np.random.default_rng(0)
    return {
        kind: np.frombuffer(bits.bytes(8 * 64), kind)[: np.prod(shape)].reshape(shape) for kind, shape in SHAPES.items()
    }


def layout(differences: int) -> list[list[object]]:
    return [[name, name, [*shape], differences * (name != "f8")] for name, shape in SHAPES.items()]


@pytest.mark.parametrize("differences", [0, 1])
def test_every_type_comes_back(differences: int) -> None:
    chosen = [name for name in SHAPES if name != "f8"] * differences
    content = pack_container("some", {"about": 1}, arrays(), differences=chosen)
    header, unpacked = unpack_container(content, "some", lambda header_fields: layout(differences))
    assert header == {"about": 1}
    for name, values in arrays().items():
        assert (unpacked[name].dtype, unpacked[name].tobytes()) == (values.dtype, values.tobytes()), name


def test_plain_container_holds_numbers_as_they_are() -> None:
    body = b"".join(values.tobytes() for values in arrays().values())
    assert pack_container("some", {}, arrays(), plain=True)[:-32].endswith(body)


def test_arrays_unlike_the_header_are_refused() -> None:
    content = pack_container("some", {}, arrays())
    for other in (layout(1), layout(0)[:-1], []):
        with pytest.raises(VerificationError, match="arrays"):
            unpack_container(content, "some", lambda header_fields, other=other: other)  # type: ignore[misc]
    with pytest.raises(VerificationError, match="another kind"):
        unpack_container(content, "other", lambda header_fields: layout(0))
    with pytest.raises(VerificationError, match="body"):
        unpack_container(with_digest(content[:-32] + b"x"), "some", lambda header_fields: layout(0))


def test_other_version_or_damage_is_refused() -> None:
    content = pack_container("some", {}, arrays())[:-32]
    size = int.from_bytes(content[12:16], "little")
    for change in (
        content[:10] + (2).to_bytes(2, "little") + content[12:],
        content[:12] + len(content).to_bytes(4, "little") + content[16:],
    ):
        with pytest.raises(VerificationError, match="another version or is truncated"):
            unpack_container(with_digest(change), "some", lambda header_fields: layout(0))
    for change in (content[:16] + b"[" * size + content[16 + size :], content[: 16 + size] + b"x" * 99):
        with pytest.raises(VerificationError, match=r"damaged|body|cannot be read"):
            unpack_container(with_digest(change), "some", lambda header_fields: layout(0))


def test_no_flipped_bit_is_read() -> None:
    content = pack_container("some", {}, arrays())
    for index in range(len(content)):
        flipped = bytearray(content)
        flipped[index] ^= 1 << index % 8
        with pytest.raises(VerificationError):
            unpack_container(bytes(flipped), "some", lambda header_fields: layout(0))


def test_kind_is_detected_from_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(pack_container("some", {}, arrays()))
    assert is_container(tmp_path / "file", "some")
    assert not is_container(tmp_path / "file", "som")
    assert not is_container(tmp_path / "file", "somewhat")
    assert not is_container(tmp_path / "none", "some")
