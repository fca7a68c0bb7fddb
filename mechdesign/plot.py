"""Pictures as matplotlib figures (extra `plot`), files of them, and pages for the browser."""

from mechdesign.output.page.page import save_page as page
from mechdesign.output.pictures.maps import plot_diagnosis as diagnosis
from mechdesign.output.pictures.maps import plot_mechanism as mechanism
from mechdesign.output.pictures.plot import load_drawable as load
from mechdesign.output.pictures.plot import plot_sweep as sweep
from mechdesign.output.pictures.plot import save_plot as save

__all__ = ["diagnosis", "load", "mechanism", "page", "save", "sweep"]
