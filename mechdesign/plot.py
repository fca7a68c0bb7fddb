"""Pictures as matplotlib figures (extra `plot`), and files of them."""

from mechdesign.output.pictures.diagnosis import plot_diagnosis as diagnosis
from mechdesign.output.pictures.maps import plot_mechanism as mechanism
from mechdesign.output.pictures.plot import load_drawable as load
from mechdesign.output.pictures.plot import save_plot as save
from mechdesign.output.pictures.sweeps import plot_sweep as sweep

__all__ = ["diagnosis", "load", "mechanism", "save", "sweep"]
