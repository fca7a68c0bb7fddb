"""Rows of a mechanism, whichever way it is kept: what sampling, export and pictures ask of a table and of factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.mechanism.admission import Admission, prove
from mechdesign.mechanism.table.dataset import stored_points

Scan = Literal["table", "row"]


class Rows(Shown, ABC):
    """P(y|u) = mass / sum, in whole numbers."""

    dataset: xr.Dataset
    placed: ClassVar[str]  # whose coordinates are those of reports

    def facts(self) -> Mapping[str, object]:
        attrs = self.dataset.attrs
        return {"secrets": self.secrets, "reports": self.reports, "program": attrs["program"], "claim": attrs["claim"]}

    @cached_property
    def admission(self) -> Admission:
        """What is proved of the mechanism. Raises: VerificationError where its claim is not."""
        return prove(self.dataset)

    @property
    def secrets(self) -> int:
        """Number of secrets n."""
        return int(self.dataset.sizes["secret"])

    @property
    def reports(self) -> int:
        """Number of reports m."""
        return int(self.dataset.sizes[self.placed])

    @property
    def report_points(self) -> NDArray[np.float64]:
        """Coordinates of the reports (m, k)."""
        return stored_points(self.dataset, self.placed)

    @abstractmethod
    def probabilities(self, secrets: ArrayLike) -> NDArray[np.float64]:
        """P(y|u) (b, m) of secrets (b,), in floating point: for looking at."""

    @abstractmethod
    def integers(self, secret: int) -> tuple[list[int], int]:
        """The exact masses of one row over the reports, and their sum."""

    @abstractmethod
    def sample(self, secrets: ArrayLike, size: int, *, seed: int | None = None) -> NDArray[np.int64]:
        """Reports (b, size) drawn independently for secrets (b,), each with exactly its probability.

        Bits come from the operating system; `seed` takes them from NumPy's generator, for simulations only: such
        reports can be predicted.
        """

    @abstractmethod
    def live(self, secret: int, scan: Scan) -> tuple[int, str]:
        """One report, and what the addresses that were read depend on."""

    @abstractmethod
    def can_report(self, place: int) -> bool:
        """Whether a report has a mass that is not 0."""

    def checked(self, secrets: ArrayLike) -> NDArray[np.int64]:
        """The numbers (b,) of secrets. Raises: InputError for one that is not there."""
        return checked_secrets(secrets, self.secrets)


def checked_secrets(secrets: ArrayLike, size: int) -> NDArray[np.int64]:
    """The numbers (b,) of secrets, out of `size`. Raises: InputError for none, and for one that is not there."""
    asked = np.atleast_1d(np.asarray(secrets))
    whole = asked.ndim == 1 and asked.dtype.kind in "iu" and len(asked) > 0
    if not whole or asked.min() < 0 or asked.max() >= size:
        raise InputError(
            "no such secret", field="secret", value=str(secrets), remedy=f"use whole numbers 0..{size - 1}"
        )
    return asked.astype(np.int64)
