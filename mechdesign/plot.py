"""Pictures as matplotlib figures (extra `plot`), files of them, and pages for the browser."""

import sys
from types import ModuleType
from typing import NoReturn

from mechdesign.errors import InputError
from mechdesign.pictures.maps import plot_mechanism as mechanism
from mechdesign.pictures.panels import plot_diagnosis as diagnosis
from mechdesign.pictures.plot import load_drawable as load
from mechdesign.pictures.plot import plot_sweep as sweep
from mechdesign.pictures.plot import save_plot as save

__all__ = ["diagnosis", "load", "mechanism", "save", "sweep"]


class _Functions(ModuleType):
    def __call__(self, *args: object, **keywords: object) -> NoReturn:
        raise InputError(
            "is a module of functions",
            field="plot",
            remedy="write md.plot.mechanism(mechanism), or md.plot.save(mechanism, 'picture.png') for a file",
        )

    def __dir__(self) -> list[str]:
        return __all__


sys.modules[__name__].__class__ = _Functions
