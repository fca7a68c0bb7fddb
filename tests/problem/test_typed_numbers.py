from __future__ import annotations

import math
import random

import pytest

from mechdesign.base.numbers import LARGEST_WHOLE, real_number, whole_number

FOREIGN = [
    "\uff11",
    "\u0663",
    "\u0967",
    "\u00b2",
    "\u2460",
    "\u22121",
    "1_0",
    " 1",
    "1 ",
    "1\n",
    "",
    "+",
    "-",
    "0x1",
    "1e",
    "e1",
]


@pytest.mark.parametrize("text", [*FOREIGN, "1.0", "1e3", "nan", "inf", str(LARGEST_WHOLE + 1), "9" * 5000, "0" * 5000])
def test_invalid_integers_are_refused(text):
    with pytest.raises(ValueError, match="must be an integer"):
        whole_number(text)


@pytest.mark.parametrize(
    "text",
    [
        *FOREIGN,
        "nan",
        "NaN",
        "1,5",
        ".",
        "1e400",
        "-1e400",
        "1e-400",
        "1" * 400,
        "1e99999999999",
        "0x1p3",
        "1d3",
        "1.1e100",
        "-1e101",
        "9e-101",
        "5e-324",
    ],
)
def test_invalid_numbers_are_refused(text):
    with pytest.raises(ValueError, match="must be"):
        real_number(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("007", 7),
        (str(LARGEST_WHOLE), LARGEST_WHOLE),
        (str(-LARGEST_WHOLE), -LARGEST_WHOLE),
    ],
)
def test_whole_numbers(text, value):
    assert whole_number(text) == value


@pytest.mark.parametrize("text", ["0", "-0", "1.", ".5", "+1.5e-3", "1E5", "0e999999", "0.000", "1e100", "-1e-100"])
def test_numbers_are_read_as_python_reads_them(text):
    assert real_number(text).hex() == float(text).hex()


@pytest.mark.parametrize(("text", "value"), [("inf", math.inf), ("-INF", -math.inf), ("+Infinity", math.inf)])
def test_infinite_numbers(text, value):
    assert real_number(text) == value


def test_python_numbers_are_read_back():
    rng = random.Random(5)
    for _ in range(1000):
        value = rng.uniform(-1, 1) * 10.0 ** rng.randint(-90, 99)
        assert real_number(repr(value)) == value
        whole = rng.randint(-LARGEST_WHOLE, LARGEST_WHOLE)
        assert whole_number(str(whole)) == whole
