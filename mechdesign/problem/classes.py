"""Labels of classes: their rules, and the number of a class by its label."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import AnyArray, Indices
from mechdesign.base.labels import join_labels
from mechdesign.base.numbers import whole_number
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.problem.domain import Domain

LONGEST = 200  # characters of a label, a guess: labels are words of a questionnaire


def check_labels(labels: object, size: int) -> tuple[str, ...]:
    """The labels (n,) of classes, if they are printable and distinct; from untrusted data."""
    if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
        raise InputError("must be texts, one for each class", field="labels", value=f"{labels!r:.80}")
    if len(labels) != size:
        raise InputError(f"must be {size} labels, one for each class", field="labels", value=len(labels))
    seen: dict[str, str] = {}
    for number, label in enumerate(labels):
        if label.isdecimal() and int(label) < size and label != str(number):
            message, remedy = "may be taken for the number of another class", f'write a word, such as "grade {label}"'
            raise InputError(message, field="labels", value=label, remedy=remedy)
        if not label.isprintable() or label != label.strip() or not 0 < len(label) <= LONGEST:
            message = f"must be printable, without blanks at its ends, of 1 to {LONGEST} characters"
            raise InputError(message, field="labels", value=f"{label!r:.80}")
        # Labels that differ only in case or width would look alike in a table.
        plain = unicodedata.normalize("NFKC", label).casefold()
        if plain in seen:
            other = seen[plain]
            problem = "two classes have one label" if other == label else "two labels differ only in case or width"
            raise InputError(problem, field="labels", value=f"{other}, {label}")
        seen[plain] = label
    return tuple(labels)


def numbers_of(domain: Domain, secrets: ArrayLike, field: str = "secret") -> ArrayLike:
    """The numbers of classes given by their labels; numbers unchanged."""
    names = np.asarray(secrets)
    if names.dtype.kind not in "UO" or not all(isinstance(name, str) for name in names.ravel().tolist()):
        return secrets
    found = [number_of_label(domain, str(name), field) for name in names.ravel().tolist()]
    return np.array(found, np.int64).reshape(names.shape)


def number_of_label(domain: Domain, name: str, field: str = "secret") -> int:
    """The number of the class of a label."""
    if domain.labels is None:
        raise InputError("the secrets have no labels; use a number", field=field, value=name)
    try:
        return domain.labels.index(name.strip())
    except ValueError:
        remedy = f"use one of {join_labels(domain.labels)}"
        raise InputError("no class has this label", field=field, value=name, remedy=remedy) from None


def check_shared_labels(domain: Domain, reports: Domain) -> None:
    """Refuse reports that are classes at the positions of other classes, which a formula would take for equal."""
    if domain.labels is None or reports.labels is None:
        return
    places = dict(zip(domain.points[:, 0].tolist(), domain.labels, strict=True))
    answers = dict(zip(reports.points[:, 0].tolist(), reports.labels, strict=True))
    for at, label in answers.items():
        elsewhere = label in domain.labels and places.get(at) != label
        if elsewhere or places.get(at, label) != label:
            remedy = "give both the same labels in the same order, further reports last, or pass a TableLoss"
            raise InputError("a report has the position of another class", field="reports", value=label, remedy=remedy)


def label_positions(labels: Sequence[Any], known: Sequence[str], field: str, side: str) -> Indices | None:
    """The positions of the classes `known` among labels (n,) of a table; None if the labels are numbers of their own.

    Raises InputError if the labels are words and not those of the classes.
    """
    words = [str(label).strip() for label in labels]
    if sorted(words) == sorted(known):
        position = {word: k for k, word in enumerate(words)}
        return np.array([position[label] for label in known], np.int64)
    if all(isinstance(label, (int, np.integer)) or str(label).strip().isdecimal() for label in labels):
        return None
    stray = next((word for word in words if word not in known), words[0])
    remedy = f"label them {join_labels(known)}"
    raise InputError(f"labels of {side}s are not those of the classes", field=field, value=stray, remedy=remedy)


def label_numbers(words: Sequence[Any], known: Sequence[str], field: str, side: str) -> Indices | None:
    """The numbers of the classes of words (k,), which may repeat; None if all words are numbers and no labels."""
    number = {label: k for k, label in enumerate(known)}
    names = [str(word).strip() for word in words]
    stray = next((name for name in names if name not in number), None)
    if stray is None:
        return np.array([number[name] for name in names], np.int64)
    if all(name.isdecimal() for name in names):
        return None
    raise InputError(f"is not the label of a {side}", field=field, value=stray, remedy=f"use {join_labels(known)}")


def in_class_order(values: ArrayLike, field: str, *domains: Domain) -> ArrayLike:
    """Labelled values over classes, in the order of the classes; other values unchanged."""
    # domains: those of the axes, secrets and reports, or secrets alone.
    if all(domain.labels is None for domain in domains):
        return values
    labelled: Any = values
    if isinstance(values, Mapping):
        labelled = {str(label): value for label, value in values.items()}
        label_positions(list(labelled), domains[0].labels or (), field, "secret")
        return [labelled[label] for label in domains[0].labels or ()]
    if hasattr(labelled, "dims") and hasattr(labelled, "coords"):
        sides = [side for side in ("secret", "report") if side in labelled.dims]
        labelled = labelled.transpose(*sides) if len(sides) == len(labelled.dims) else labelled
        axes = [labelled.indexes.get(side) for side in labelled.dims]
    elif hasattr(labelled, "axes") and hasattr(labelled, "iloc"):
        labelled = labelled.T if [axis.name for axis in labelled.axes] == ["report", "secret"] else labelled
        axes = list(labelled.axes)
    else:
        return values
    array, is_ordered = np.asarray(labelled), False
    for number, (domain, index) in enumerate(zip(domains, axes, strict=False)):
        if domain.labels is None or index is None or index.nlevels > 1:
            continue
        order = label_positions(index.tolist(), domain.labels, field, ("secret", "report")[number])
        if order is not None:
            array, is_ordered = np.take(array, order, axis=number), True
    return array if is_ordered else values


def label_arrays(attrs: Mapping[Any, Any]) -> dict[str, AnyArray]:
    """The labels of the secrets and reports of a Dataset, by dimension, from its attributes, which are untrusted."""
    labels = _label_array(attrs.get("domain"))
    found = {} if labels is None else {"secret": labels}
    of_reports = labels if "reports" not in attrs else _label_array(attrs["reports"])
    return found if of_reports is None else {**found, "report": of_reports}


def _label_array(description: object) -> AnyArray | None:
    try:
        known = json.loads(description) if isinstance(description, str) else None
    except (ValueError, RecursionError):
        return None
    labels = known.get("labels") if isinstance(known, dict) else None
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        return None
    return np.array(labels, dtype=f"<U{max(1, *map(len, labels))}")


def place_number(word: str, labels: Sequence[str], field: str) -> int:
    """The number of a place by its label, or by its number where no label is that number."""
    if word in labels:
        return int(list(labels).index(word))
    try:
        return whole_number(word)
    except ValueError as error:
        remedy = f"use one of {join_labels(labels)}" if len(labels) else f"use the number of a {field}"
        raise InputError(f"is not a {field}", field=field, value=word, remedy=remedy) from error
