from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from mechdesign.base.json_fields import (  # fmt: skip
    LARGEST,
    SMALLEST,
    check_keys,
    finite,
    finites,
    json_sha256,
    read_json,
    whole,
    wholes,
    word,
)
from mechdesign.errors import InputError


def test_valid_descriptions_round_trip():
    assert check_keys({"a": 1, "b": 2}, "map", ("a",), ("b", "c")) == {"a": 1, "b": 2}
    assert word("m", "unit") == "m"
    assert whole(3, "count", 0, 3) == 3
    assert [(type(x), x) for x in (finite(1, "x"), finite(-0.5, "x"), finite(2**53, "x"))] == [
        (int, 1),
        (float, -0.5),
        (int, 2**53),
    ]
    assert wholes([0, 2**62], "ends", 0, 2**62).tolist() == [0, 2**62]
    assert finites([1, 0.5], "x").tolist() == [1.0, 0.5]
    assert finites((), "x").shape == (0,)
    assert finites([[1.0, 2.0], [3, 4.0], [5.0, 6.0]], "map", 2).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert finites([[[1.0], [2.0]]], "map", 3).shape == (1, 2, 1)
    assert finites([[], []], "map", 2).shape == (2, 0)


@pytest.mark.parametrize(
    "call",
    [
        *(
            lambda x=x: check_keys(x, "field", ("a",))
            for x in (None, [], "a", {}, {"b": 1}, {"a": 1, "b": 2}, {1: 2, "a": 3})
        ),
        *(lambda x=x: word(x, "field") for x in (None, 1, ["m"], b"m")),
        *(lambda x=x: whole(x, "field", 1, 5) for x in (None, True, "3", 3.0, 0, 6, 10**400, [3], math.nan)),
        *(
            lambda x=x: finite(x, "field")
            for x in (None, True, "3", [3], math.nan, math.inf, -math.inf, 2**53 + 1, 10**400)
        ),
        *(lambda x=x: wholes(x, "field", 0, 9) for x in (None, 3, "3", {"0": 3}, [True], [3.0], [[3]], [10])),
        *(
            lambda x=x: finites(x, "field")
            for x in (None, 3.0, "3", [True], [None], [[3.0]], [3.0, math.nan], [10**400])
        ),
        *(
            lambda x=x: finites(x, "field", 2)
            for x in ([1.0], [[1.0], [1.0, 2.0]], [[1.0], 2.0], [[[1.0]]], [[1.0, True]])
        ),
    ],
)
@pytest.mark.obligation("descriptions")
def test_invalid_text_is_refused_with_field(call):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.field == "field"
    assert len(caught.value.value) < 100


def test_products_of_numbers_in_range_keep_their_digits():
    assert np.isfinite(3 * (2 * LARGEST) ** 2)
    assert math.sqrt(SMALLEST) ** 2 == SMALLEST
    assert 2.0**-1074 / SMALLEST < 2.0**-110


@pytest.mark.parametrize("convert", [str, str.encode])
def test_valid_json_is_parsed(convert):
    assert read_json(convert('{"a": [1, 2.5, {"a": null}], "b": {"a": true}}')) == {
        "a": [1, 2.5, {"a": None}],
        "b": {"a": True},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 1}', "^a is repeated"),
        ('[{"b": {"a": 1, "\\u0061": 2}}]', "^a is repeated"),
        ('{"' + "k" * 999 + '": 1, "' + "k" * 999 + '": 1}', "^k{80} is repeated"),
        ('{"a": NaN}', "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ('{"a": 1', "delimiter"),
        ("", "Expecting value"),
    ],
)
@pytest.mark.obligation("descriptions")
def test_ambiguous_or_invalid_json_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_json(text)
    with pytest.raises(ValueError, match=message):
        read_json(text.encode())


def test_description_sha256_ignores_key_order():
    expected = hashlib.sha256(b'{"a": [1, 0.5], "b": {"c": null, "d": "x"}}').hexdigest()
    assert json_sha256({"b": {"d": "x", "c": None}, "a": [1, 0.5]}) == expected
