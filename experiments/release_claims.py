"""What the text of paper 002, section 5 and appendix B, says of its three experiments, set against our figures.

Errors are those expected in closed form, or simulated means where there is none, at the largest dataset and relative to
the soft truth. The figures of the paper are not in its text, and some symbols neither, so orderings and trends are all
that is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

Panels = Mapping[str, xr.Dataset]
CLEAR = 2.0  # times less error is a clear advantage
_MEASURED = ("smooth", "lipschitz", "input_perturbation")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of the paper, whether every ratio lies between `least` and `most`, and the ratios by their setting."""

    sentence: str
    ratios: Mapping[str, float]
    least: float = 1.0
    most: float = np.inf

    @property
    def failing(self) -> list[str]:
        """The settings that disagree."""
        return [name for name, ratio in self.ratios.items() if not self.least <= ratio <= self.most]


def income_claims(panels: Panels) -> list[Claim]:
    """Of the one-way threshold; settings have the attributes threshold and epsilon_inverse."""
    near = chosen(panels, threshold=100_000)
    far = {name: bands for name, bands in panels.items() if name not in near}
    loose = {name: bands for name, bands in far.items() if _is_loosest(bands, far)}
    strict_to_loose = {
        f"{method}, T = {threshold:,}": ratio
        for threshold in sorted({bands.attrs["threshold"] for bands in panels.values()})
        for method in _MEASURED
        for ratio in _along(chosen(panels, threshold=threshold), "epsilon_inverse", method).values()
    }
    most = max(strict_to_loose, key=lambda name: strict_to_loose[name])
    return [
        Claim(
            sentence="far thresholds: smooth has a clear advantage over lipschitz (lipschitz / smooth)",
            ratios=_over(far, "lipschitz", "smooth"),
            least=CLEAR,
        ),
        Claim(
            sentence="far thresholds, largest eps: input_perturbation does well (lipschitz / input_perturbation)",
            ratios=_over(loose, "lipschitz", "input_perturbation"),
        ),
        Claim(
            sentence="near threshold: input_perturbation does not do well at any eps (input_perturbation / smooth)",
            ratios=_over(near, "input_perturbation", "smooth"),
        ),
        Claim(
            sentence="near threshold: smooth is worse than lipschitz by a constant factor (smooth / lipschitz)",
            ratios=_over(near, "smooth", "lipschitz"),
        ),
        *size_claims(panels, falling=("smooth", "lipschitz"), flat=("input_perturbation",)),
        Claim(
            sentence=f"2.5 times the eps gains an order of magnitude for a method lost in the text (most: {most})",
            ratios={most: strict_to_loose[most]},
            least=10.0,
        ),
    ]


def two_way_claims(panels: Panels) -> list[Claim]:
    """Of the two-way threshold; settings have the attribute epsilon_inverse."""
    return [
        *level_claims(panels, _MEASURED),
        *size_claims(panels, falling=("smooth", "lipschitz"), flat=("input_perturbation",)),
        *_best(panels, "smooth", ("lipschitz", "input_perturbation")),
    ]


def kernel_claims(panels: Panels) -> list[Claim]:
    """Of the kernel density; settings have the attributes epsilon_inverse and bandwidth."""
    at = {name: bands for name, bands in panels.items() if bands.attrs["bandwidth"] == _middle(panels, "bandwidth")}
    widths = {
        name: bands
        for name, bands in panels.items()
        if bands.attrs["epsilon_inverse"] == _middle(panels, "epsilon_inverse")
    }
    methods = (*_MEASURED, "noisy_distance")
    return [
        *level_claims(at, methods),
        *size_claims(panels, falling=("smooth", "lipschitz"), flat=("input_perturbation", "noisy_distance")),
        *_best(panels, "smooth", ("lipschitz", "input_perturbation", "noisy_distance")),
        Claim(
            sentence="input_perturbation: more error at wider kernels (widest / narrowest)",
            ratios=_along(widths, "bandwidth", "input_perturbation"),
        ),
        *(
            Claim(
                sentence=f"{method}: less error at wider kernels (narrowest / widest)",
                ratios=_along(widths, "bandwidth", method, rising=True),
            )
            for method in ("lipschitz", "noisy_distance", "smooth")
        ),
    ]


def level_claims(panels: Panels, methods: Sequence[str]) -> list[Claim]:
    """Every method has less error at a larger eps."""
    return [
        Claim(
            sentence=f"{method}: less error at a larger eps (smallest / largest eps)",
            ratios=_along(panels, "epsilon_inverse", method),
        )
        for method in methods
    ]


def size_claims(panels: Panels, *, falling: Sequence[str], flat: Sequence[str]) -> list[Claim]:
    """Errors that fall with the users by the root of their number or more, and errors that fall by less."""
    sizes = next(iter(panels.values()))["size"].values
    limit = float(sizes[-1] / sizes[0]) ** 0.5

    def fall(bands: xr.Dataset, method: str) -> float:
        own = errors(bands, method)
        return float(own[0] / own[-1])

    return [
        Claim(
            sentence=f"{method}: {'less error with' if method in falling else 'not helped by'} {limit**2:g} times "
            "the users (fewest / most users)",
            ratios={name: fall(bands, method) for name, bands in panels.items()},
            least=limit if method in falling else 0.0,
            most=np.inf if method in falling else limit,
        )
        for method in (*falling, *flat)
    ]


def chosen(panels: Panels, **attributes: float) -> dict[str, xr.Dataset]:
    """The settings with these attributes."""
    return {
        name: bands
        for name, bands in panels.items()
        if all(bands.attrs[key] == value for key, value in attributes.items())
    }


def errors(bands: xr.Dataset, method: str) -> NDArray[np.float64]:
    """The errors (size,) of a method: expected, or simulated where there is no closed form."""
    own = bands.sel(truth_kind="soft", mechanism=method)
    return own["expected"].fillna(own["mean"]).values


def _over(panels: Panels, worse: str, better: str) -> dict[str, float]:
    return {name: float(errors(bands, worse)[-1] / errors(bands, better)[-1]) for name, bands in panels.items()}


def _best(panels: Panels, method: str, others: Sequence[str]) -> list[Claim]:
    return [
        Claim(sentence=f"{method} is best ({other} / {method})", ratios=_over(panels, other, method))
        for other in others
    ]


def _along(panels: Panels, attribute: str, method: str, *, rising: bool = False) -> dict[str, float]:
    """Error at the largest value of an attribute over that at the smallest; the inverse where `rising`."""

    def order(name: str) -> float:
        return float(panels[name].attrs[attribute])

    first, last = min(panels, key=order), max(panels, key=order)
    ratio = float(errors(panels[last], method)[-1] / errors(panels[first], method)[-1])
    return {f"{first} / {last}" if rising else f"{last} / {first}": 1 / ratio if rising else ratio}


def _middle(panels: Panels, attribute: str) -> float:
    found = sorted({float(bands.attrs[attribute]) for bands in panels.values()})
    return found[len(found) // 2]


def _is_loosest(bands: xr.Dataset, among: Panels) -> bool:
    own = chosen(among, threshold=bands.attrs["threshold"]).values()
    return bool(bands.attrs["epsilon_inverse"] == min(other.attrs["epsilon_inverse"] for other in own))
