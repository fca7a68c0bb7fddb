"""Pictures as matplotlib figures (extra `plot`), and files of them."""

import sys
from types import ModuleType
from typing import NoReturn

from mechdesign.errors import InputError
from mechdesign.output.pictures.diagnosis import plot_diagnosis as diagnosis
from mechdesign.output.pictures.maps import plot_mechanism as mechanism
from mechdesign.output.pictures.plot import load_drawable as load
from mechdesign.output.pictures.plot import save_plot as save
from mechdesign.output.pictures.sweeps import plot_sweep as sweep

__all__ = ["diagnosis", "load", "mechanism", "save", "sweep"]


class _Room(ModuleType):
    def __call__(self, *args: object, **given: object) -> NoReturn:
        """Raises: InputError: a picture is drawn by one of the functions."""
        raise InputError(
            "is a room of functions, and no function",
            field="plot",
            remedy="write md.plot.mechanism(mechanism), or md.plot.save(mechanism, 'picture.png') for a file",
        )


sys.modules[__name__].__class__ = _Room
