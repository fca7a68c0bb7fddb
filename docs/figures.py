"""A scraper for sphinx-gallery that finds figures returned by a block, which pyplot does not know."""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_SHOWN = "shown"


def scrape_returned_figure(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figure that a block returns, unless pyplot manages it, and return its markup."""
    value = block_vars["example_globals"].get("___")
    if not isinstance(value, Figure) or hasattr(value, "number") or value.get_gid() == _SHOWN:  # pyplot numbers its own
        return ""
    value.set_gid(_SHOWN)
    path = next(block_vars["image_path_iterator"])
    value.savefig(path)
    return figure_rst([path], gallery_conf["src_dir"], value.get_suptitle())
