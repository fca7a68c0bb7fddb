"""A scraper for sphinx-gallery: figures that a block returns, which pyplot does not know, and their thumbnails."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

THUMBNAILS = "thumbnails"  # folder beside the pictures of the gallery
_SHOWN = "shown"
_MARGIN = 0.05  # inches around a panel


def scrape_returned_figure(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figure that a block returns, unless pyplot manages it, and return its markup."""
    value = block_vars["example_globals"].get("___")
    if not isinstance(value, Figure) or hasattr(value, "number") or value.get_gid() == _SHOWN:  # pyplot numbers its own
        return ""
    value.set_gid(_SHOWN)
    path = next(block_vars["image_path_iterator"])
    value.savefig(path)
    save_thumbnail(value, thumbnail_of(path, block_vars["src_file"]))
    return figure_rst([path], gallery_conf["src_dir"], value.get_suptitle())


def thumbnail_of(image: str, source: str) -> Path:
    """The file of the thumbnail of an example, in a folder beside its pictures."""
    return Path(image).parent / THUMBNAILS / f"{Path(source).stem}.png"


def save_thumbnail(figure: Figure, path: Path) -> None:
    """Write the panel of a figure with the reports of somebody, or else its largest panel, without the heading.

    A whole figure has too many words for a thumbnail.
    """
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.axison and (axes.images or axes.collections or axes.lines)]
    reports = [axes for axes in panels if axes.get_title(loc="left").startswith("reports of somebody")]
    panel = max(
        reports[:1] or panels, key=lambda axes: axes.get_window_extent().width * axes.get_window_extent().height
    )
    # The layout stays: without its heading and legend the figure would be laid out again, and the panel elsewhere.
    figure.set_layout_engine("none")
    for legend in figure.legends:
        legend.set_visible(False)
    panel.set_title("", loc="left")
    box = panel.get_tightbbox().transformed(figure.dpi_scale_trans.inverted()).padded(_MARGIN)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches=box)
