"""The documentation site: python -m sphinx -W -n docs build/site (extra `docs`; nothing is fetched)."""

import inspect
import itertools
import os
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.inspect import stringify_signature

import mechdesign

# modules of this folder: generated here, figures by its name in sphinx_gallery_conf
sys.path.append(str(Path(__file__).parent))

import generated

matplotlib.use("agg")
os.environ.setdefault("COLUMNS", "100")

project = "mechdesign"
author = "the mechdesign authors"
copyright = f"2026, {author}"
version = release = mechdesign.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
nitpicky = True
default_role = "code"
smartquotes = False  # would turn the two dashes of an option into one
nitpick_ignore_regex = [("py:.*", ".*")]  # types of annotations, most of other packages
exclude_patterns = ["build", "gallery/*.py", "gallery/README.rst"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"mechdesign {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "Array": "Array"}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False

# Without running the examples, such as with -D plot_gallery=0, their thumbnails are not there.
suppress_warnings = ["sphinx_gallery.thumbnail"]

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "tutorials/examples",
    "filename_pattern": r"/\d\d_",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib", "figures.scrape_returned_figure"),
    "capture_repr": (),
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r"^$",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,  # its page loads scripts from other sites
    "min_reported_time": 1,
    "remove_config_comments": True,
}

html_math_renderer = "mathml"  # browsers set MathML themselves: no script, nothing fetched

_SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Notes", "Examples", "References")
_ENTRIES = ("Parameters", "Attributes", "Returns", "Yields", "Raises")  # sections of names and their descriptions
_FIELDS = re.compile(r"^(Parameters|Fields|Returns|Raises|Cost|Derived[^:]*|Invariants|Source|Reference|Statement): ?")


def _as_text(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText: paragraphs, literal blocks for indented lines, and numpydoc sections."""
    start = next((k for k, pair in enumerate(itertools.pairwise(lines)) if _heads_section(*pair)), len(lines))
    lines[:] = [*_prose(lines[:start]), *_sections(lines[start:])]


def _heads_section(line: str, below: str) -> bool:
    return line in _SECTIONS and below == "-" * len(line)


def _escape_markup(text: str) -> str:
    """Escape markup, except between backquotes."""
    pieces = re.split(r"`+([^`]+)`+", text)
    escaped = [p if k % 2 else re.sub(r"([\\*|_<>])", r"\\\1", p) for k, p in enumerate(pieces)]
    return "".join(f"``{p}``" if k % 2 else p for k, p in enumerate(escaped))


def _sections(lines: list[str]) -> list[str]:
    """Return the numpydoc sections as definition lists, with examples unchanged."""
    shown: list[str] = []
    head = ""
    for line, below in itertools.pairwise([*lines, ""]):
        if _heads_section(line, below):
            head = line
            shown += ["", f"**{line}**", ""]
        elif line == "-" * len(head):
            continue
        elif head == "Examples" or not line.strip():
            shown.append(line)
        else:
            if head in _ENTRIES and not line.startswith(" "):  # entries without a description are paragraphs
                shown.append("")
            shown.append(line[: len(line) - len(line.lstrip())] + _escape_markup(line.strip()))
    return shown


def _prose(lines: list[str]) -> list[str]:
    shown: list[str] = []
    before = ""
    for line in lines:
        indented = line.startswith("    ")
        if not line.strip():
            shown.append("")
        elif indented and not before.strip():
            shown += ["::", "", line]
        elif (indented and shown and shown[-1].startswith("    ")) or line.startswith((">>> ", "... ", ".. ")):
            shown.append(line)
        else:
            field = _FIELDS.match(line)
            if field and before.strip():
                shown.append("")
            text = line.strip()
            head, text = (f"**{field[1]}:** ", text[field.end() :]) if field else ("", text)
            shown.append(head + _escape_markup(text))
        before = line
    return shown


def _as_fields(app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returns: str) -> Any:
    """Show the fields of a class as its signature, and an alias by its name."""
    if what == "class" and (signature or "").startswith("(*args"):
        fields = inspect.signature(obj)
        signature, returns = stringify_signature(fields, show_return_annotation=False, unqualified_typehints=True), None
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns))


_PRIMED = re.compile(r"<msup>(<mi>\w+</mi>)<mi>&#x02032;</mi></msup>")  # a prime is a raised sign already


def _inline_math(writer: Any, node: Any) -> None:
    writer.body.append(_PRIMED.sub(r"\1<mi>&#x02032;</mi>", convert(node.astext())))
    raise nodes.SkipNode


def _block_math(writer: Any, node: Any) -> None:
    writer.body.append(_PRIMED.sub(r"\1<mi>&#x02032;</mi>", convert(node.astext(), display="block")))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Register the readers of docstrings and signatures, the pages that are generated, and the writer of formulas."""
    app.connect("config-inited", generated.write)
    app.connect("autodoc-process-docstring", _as_text)
    app.connect("autodoc-process-signature", _as_fields)
    app.add_html_math_renderer("mathml", (_inline_math, None), (_block_math, None))
