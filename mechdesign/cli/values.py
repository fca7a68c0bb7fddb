"""Parsers of option values: epsilon, places, rows, scales."""

from __future__ import annotations

from mechdesign.base.numbers import list_words, number_list, real_number, whole_number
from mechdesign.cli.remedies import option_names
from mechdesign.errors import InputError


def parse_radius(within: float | None) -> float:
    """The radius of --within."""
    from mechdesign.evaluation.privacy_radius import one_radius

    with option_names():
        return one_radius(within)


def parse_epsilon(*, within: float | None, **forms: float | None) -> tuple[float, dict[str, float]]:
    """The epsilon, in nats per unit, of --within and --factor or of --epsilon; and these as parameters of a design."""
    from mechdesign.evaluation.privacy_radius import level_of_odds

    with option_names():
        return level_of_odds(within=within, **forms)


def parse_box(words: str) -> list[float]:
    """The four numbers of --box W,S,E,N."""
    try:
        return number_list(words, count=4)
    except ValueError as error:
        remedy = "write four numbers of degrees, W,S,E,N"
        raise InputError(str(error), field="box", value=words, remedy=remedy) from error


def positive_number(word: str, name: str) -> float:
    """Parse a word of an option as a positive number."""
    from mechdesign.base.validation import check_positive

    try:
        number = real_number(word)
    except ValueError as error:
        raise InputError(str(error), field=name, value=word) from error
    return check_positive(number, name)


def parse_place(first: str | None, rest: list[str]) -> list[float] | None:
    """The numbers of --at X Y, from the first word and the rest of the command line; None without numbers."""
    # Typer takes one word for --at; further coordinates are in the rest of the line.
    words = rest if first is None else [first, *rest]
    try:
        numbers = [number for word in words for number in number_list(word)]
    except ValueError as error:
        remedy = "write FILE --at X Y, other options before it"
        raise InputError(f"is not a location: {error}", field="at", value=" ".join(words), remedy=remedy) from error
    if first is None and rest:
        message = "not expected here; write FILE --at X Y, or --lon E --lat N"
        raise InputError(message, field="command line", value=" ".join(rest))
    return numbers or None


def row_range(words: str | None) -> range | None:
    """The range of --rows FIRST:END."""
    if words is None:
        return None
    try:
        first, end = (whole_number(word) for word in words.split(":"))
    except ValueError as error:
        raise InputError("must be FIRST:END, such as 0:100", field="rows", value=words) from error
    return range(first, end)


def row_list(words: str | None) -> list[int] | None:
    """The numbers of --rows 3,5 or FIRST:END."""
    if words is None or ":" in words:
        return None if words is None else list(row_range(words) or ())
    try:
        return [whole_number(word) for word in list_words(words)]
    except ValueError as error:
        raise InputError(str(error), field="rows", value=words, remedy="write rows such as 3,5 or 0:4") from error


def parse_scales(words: str | None) -> list[float] | None:
    """The scales of --scales, 0.5,1,2 or FIRST:LAST:COUNT."""
    from mechdesign.base.validation import check_positive

    if words is None:
        return None
    try:
        if ":" in words:
            from mechdesign.output.sweep import scale_range

            first, last, count = words.split(":")
            return scale_range(real_number(first), real_number(last), whole_number(count))
        scales = number_list(words)
    except InputError:
        raise
    except ValueError as error:
        remedy = "write scales such as 0.5,1,2, or FIRST:LAST:COUNT such as 0.25:4:9"
        raise InputError(str(error), field="scales", value=words, remedy=remedy) from error
    if not 1 <= len(set(scales)) == len(scales):
        raise InputError("must be distinct", field="scales", value=words)
    return [check_positive(scale, "scales") for scale in scales]
