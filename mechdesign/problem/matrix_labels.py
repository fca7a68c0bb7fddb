"""Labels or data: the first line and the first column of a matrix may be names, ids, ages or years."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from mechdesign.base.arrays import AnyArray, Matrix, Vector
from mechdesign.base.labels import join_labels
from mechdesign.errors import InputError
from mechdesign.problem.columns import INDEX, is_missing, number_of, plain_name
from mechdesign.problem.text import TextFile

SUM_TOLERANCE = 0.01  # rows further than this from 1 are not probabilities that were rounded
# headers of a column that names the rows
ROW_NAMES = INDEX | {"secret", "secrets", "label", "labels", "name", "names"}
_NUMBERED_NAMES = {
    "age",
    "ages",
    "year",
    "years",
    "class",
    "cell",
    "place",
    "node",
    "zip",
    "plz",
}  # of different numbers
WHOLE = re.compile(r"[+-]?\d+(\.0*)?")
_DATA_FACTOR = 3.0  # a line whose sum is within this factor of that of the others may be data
FEWEST = 3  # texts of this many fields cannot be a row of probabilities if they read 0, 1, 2


# Words are labels. Distinct numbers may be labels or data. A reading is taken if it alone makes every row sum to 1, or
# every row of counts to one number, with labels of another size than the counts. Otherwise integers next to fractions
# are labels, and running numbers (0, 1, 2) much smaller than the counts. All other cases are refused.
class MatrixLabels:
    """The first line and the first column of a matrix, read as labels or as data."""

    def __init__(self, words: AnyArray, text: TextFile, note: Callable[[str], None]) -> None:
        self.words, self.text, self.note = words, text, note
        read = np.frompyfunc(lambda word: number_of(word, text.decimal, shares=True), 1, 1)
        self.first, self.column = read(words[0]).astype(float), read(words[:, 0]).astype(float)

    def labels(self) -> tuple[bool, bool]:
        """True for the first line, and for the first column, if it holds labels."""
        if self.words.shape[1] == 1:
            return bool(np.isnan(self.first[0]) and not is_missing(self.words[0, 0])), False
        header = self._header_of_words()
        index = self._index_of_words(header)
        if header and index is None:
            named = plain_name(self.words[0, 0])
            dated = named in _NUMBERED_NAMES and self._may_be_labels(self.words[1:, 0])
            index = True if named in ROW_NAMES or dated else False if self._is_numbered() else None
        line, column = bool(header), bool(index)
        readings = [(line, column)]
        if header is None and self._may_be_labels(self.words[0, int(column) :]):
            readings.append((True, column))
        if index is None and self._may_be_labels(self.words[int(line) :, 0]):
            readings.append((line, True))
        # Both may be labels; the corner between them is neither.
        if (
            header is not False
            and index is not False
            and self._may_be_labels(self.words[0, 1:]) & self._may_be_labels(self.words[1:, 0])
        ):
            readings.append((True, True))
        return self._decide(list(dict.fromkeys(readings)))

    def _header_of_words(self) -> bool | None:
        """True if words make the first line a header, False if they make it a row; None without words."""
        first, rest = self.words[0, 0], self.words[0, 1:]
        is_named = plain_name(first) in ROW_NAMES
        texts = [word for word, number in zip(rest, self.first[1:], strict=True) if np.isnan(number)]
        if self.text.has_short_header or (texts and len(texts) == len(rest)):
            return self.text.has_short_header or not all(map(is_missing, texts)) or bool(np.isnan(self.first[0]))
        # Words beside numbers are labels if the corner names them; else a field is not a number.
        if texts:
            return is_named and not all(map(is_missing, texts))
        if not np.isnan(self.first[0]):
            return None
        if is_named and (first == "" or not is_missing(first)):
            return True
        if is_missing(first):
            return False
        # One word before numbers: the name of an index above labels, or the label of a row of data.
        are_integers = all(WHOLE.fullmatch(word) for word in rest) and self._may_be_labels(rest)
        if np.isnan(self.column[1:]).any():
            if are_integers and (np.diff(self.first[1:]) > 0).all():
                raise self._ambiguity_error("line", self.words[0])
            return False
        if not are_integers:
            raise self._ambiguity_error("line", self.words[0])
        return True

    def _index_of_words(self, header: bool | None) -> bool | None:
        """True if words make the first column labels, False if one of them is not a number; None without words."""
        if self.text.has_short_header:
            return True
        below, numbers = self.words[1 if header else 0 :, 0], self.column[1 if header else 0 :]
        texts = [word for word, number in zip(below, numbers, strict=True) if np.isnan(number)]
        if not texts:
            return None
        is_named = bool(header) and plain_name(self.words[0, 0]) in ROW_NAMES
        return (is_named or len(texts) == len(below)) and not all(map(is_missing, texts))

    def _is_numbered(self) -> bool:
        parts = [re.fullmatch(r"(.*?)(\d+)", word) for word in self.words[0]]
        if not all(parts):
            return False
        stems, numbers = {part[1] for part in parts if part}, [int(part[2]) for part in parts if part]
        return len(stems) == 1 and bool((np.diff(numbers) == 1).all())

    def _may_be_labels(self, words: AnyArray) -> bool:
        numbers = np.array([number_of(word, self.text.decimal) for word in words])
        whole = all(WHOLE.fullmatch(word) for word in words)
        rising = bool((np.diff(numbers) > 0).all())
        return (
            len(words) > 0 and not np.isnan(numbers).any() and (rising or (whole and len(set(numbers)) == len(words)))
        )

    def _block(self, reading: tuple[bool, bool]) -> Matrix:
        words = self.words[reading[0] :, reading[1] :]
        return np.vectorize(lambda word: number_of(word, self.text.decimal, shares=True), otypes=[float])(words)

    def _decide(self, readings: list[tuple[bool, bool]]) -> tuple[bool, bool]:
        # The first reading takes the most numbers as data.
        plain = readings[0]
        if self._has_decimal_commas():
            raise self._ambiguity_error("line", self.words[0])
        blocks = {reading: self._block(reading) for reading in readings}
        # Labels that leave one row or one column are not a table.
        blocks = {reading: block for reading, block in blocks.items() if reading == plain or min(block.shape) > 1}
        if len(blocks) == 1:
            return plain
        sound = [reading for reading, block in blocks.items() if _has_equal_sums(block)]
        # 0, 1 above rows that sum to 1 is a header of two reports, or a deterministic row.
        if list(self.words[0, plain[1] :]) == ["0", "1"] and (True, plain[1]) in sound:
            raise self._ambiguity_error("line", self.words[0])
        if plain in sound:
            return plain
        if not sound:
            return self._without_sums(blocks)
        for reading in sound:
            if len(sound) > 1 or self._resembles_data(reading, blocks[reading]):
                kind, labels = ("column", self.words[:, 0]) if reading[1] > plain[1] else ("line", self.words[0])
                raise self._ambiguity_error(kind, labels)
        self._note_labels(sound[0], plain)
        return sound[0]

    def _resembles_data(self, reading: tuple[bool, bool], block: Matrix) -> bool:
        if not _are_counts(block):
            return False
        line, column = self.first[int(reading[1]) :], self.column[int(reading[0]) :]
        sizes = [(line.sum(), block.sum(axis=1).mean())] if reading[0] else []
        sizes += [(column.sum(), block.sum(axis=0).mean())] if reading[1] else []
        return any(usual / _DATA_FACTOR < size < usual * _DATA_FACTOR for size, usual in sizes)

    def _without_sums(self, blocks: dict[tuple[bool, bool], Matrix]) -> tuple[bool, bool]:
        """The reading of rows without a common sum: integers beside fractions are labels, others may be."""
        plain, fullest = next(iter(blocks)), next(reversed(blocks))
        if np.isnan(blocks[fullest]).any():
            return plain
        if not _are_counts(blocks[fullest]):  # probabilities that do not sum to 1
            self._note_labels(fullest, plain)
            return fullest
        square = {reading for reading, block in blocks.items() if block.shape[0] == block.shape[1]}
        if (True, True) in blocks and _counts_up(self.first[1:]) and _counts_up(self.column[1:]):
            self._note_labels((True, True), plain)
            return True, True
        labels = {(True, plain[1]): self.words[0, int(plain[1]) :], (plain[0], True): self.words[int(plain[0]) :, 0]}
        doubtful = []
        for reading in [reading for reading in labels if reading in blocks and reading != plain]:
            numbers = np.array([number_of(word, self.text.decimal) for word in labels[reading]])
            if _counts_up(numbers) and not self._resembles_data(reading, blocks[reading]):
                self._note_labels(reading, plain)
                return reading
            # Distinct integers in any order may be labels, unless all numbers together are a square table.
            likely = (np.diff(numbers) > 0).all() or (reading in square and plain not in square)
            if likely or plain not in square:
                doubtful.append((not likely, reading))
        if doubtful:
            reading = min(doubtful)[1]
            raise self._ambiguity_error("line" if reading[0] > plain[0] else "column", labels[reading])
        rows, columns = blocks[plain].shape
        self.note(f"All {rows} x {columns} numbers of the table are taken as data, none as labels.")
        return plain

    def _has_decimal_commas(self) -> bool:
        """True if commas may be decimal marks: the fields, taken in pairs, are rows of probabilities."""
        whole, decimals = self.words[:, ::2], self.words[:, 1::2]
        if self.text.separator != "," or whole.shape != decimals.shape or whole.shape[1] < 2:
            return False
        joined = np.frompyfunc(lambda left, right: number_of(f"{left}.{right}", "."), 2, 1)(whole, decimals)
        return _has_equal_sums(joined.astype(float)) and bool((joined.astype(float) <= 1).all())

    def _note_labels(self, reading: tuple[bool, bool], plain: tuple[bool, bool]) -> None:
        kinds = [("first line", self.words[0]), ("first column", self.words[:, 0])]
        for (kind, words), taken, before in zip(kinds, reading, plain, strict=True):
            if taken and not before:
                self.note(f"The {kind} of the table is taken as labels, not as data: {join_labels(list(words))}.")

    def _ambiguity_error(self, kind: str, words: AnyArray) -> InputError:
        remedy = {
            "line": "write a header line of words; for data, name the columns alike: r0,r1,r2",
            "column": "write a header line: its first cell empty for labels; for data, all names alike: r0,r1,r2",
        }
        message = f"the first {kind} may be labels or data"
        return InputError(message, field="table", value=join_labels(list(words)), remedy=remedy[kind])


def _counts_up(numbers: Vector) -> bool:
    return len(numbers) >= FEWEST and numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def _has_equal_sums(block: Matrix) -> bool:
    if np.isnan(block).any() or (block < 0).any() or 0 in block.shape:
        return False
    sums = block.sum(axis=1)
    if _are_counts(block):
        return bool((sums == sums[0]).all())
    return bool((abs(sums - 1) <= SUM_TOLERANCE).all())


def _are_counts(block: Matrix) -> bool:
    return bool((block == np.floor(block)).all() and block.max() > 1)
