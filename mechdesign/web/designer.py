"""designer: an HTML page that designs, proves and saves the table of a box, without a network."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from mechdesign.base.atomic_write import write_atomically
from mechdesign.base.streams import visible
from mechdesign.output.packaged import package_file, package_script
from mechdesign.web.page import check_page_target, page_policy, proof_script, templates

_DESIGN = ("interior", "parents", "table", "area", "design", "answer")  # of web/browser/design, after the proof
_VIEW = ("view/numbers", "view/colours", "design/files", "design/form")  # of web/browser


def save_designer(path: str | Path, *, title: str | None = None, overwrite: bool = False) -> Path:
    """Write the page that designs tables of up to 64 cells in a browser, atomically.

    Parameters
    ----------
    path, overwrite : str or Path, bool
        An .html file, and permission to replace one.
    title : str
        A line at the top.

    Returns
    -------
    Path of the file

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.web.save_designer(folder + "/design.html").name
    'design.html'
    """
    target = check_page_target(path, overwrite=overwrite)
    style = "\n" + "".join(package_file(f"web/browser/{name}.css").decode() for name in ("page", "design/design"))
    proof = "\n" + design_script()
    view = "\n" + "\n".join(package_script(f"web/browser/{name}.js") for name in _VIEW)
    text = (
        templates()
        .get_template("designer.html")
        .render(
            policy=page_policy(style, proof, view),
            title=None if title is None else visible(title),
            version=version("mechdesign"),
            raw={"style": style, "proof": proof, "view": view},
        )
    )
    write_atomically(target, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))
    return target


def design_script() -> str:
    """The program that designs a table, after the one that proves it."""
    return "\n".join([proof_script(), *(package_script(f"web/browser/design/{name}.js") for name in _DESIGN)])
