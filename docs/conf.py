"""Sphinx settings. Everything under docs/generated is written anew at each build by the extensions in _extensions."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "_extensions"))

import tilework

project = "Tilework"
author = "The Tilework authors"
copyright = author
release = version = tilework.__version__

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.doctest", "generated_pages", "pipeline_dumps", "plain_docstrings",
]  # fmt: skip
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "show-inheritance": True}

# Annotations such as `bytes` find attributes of that name, too.
suppress_warnings = ["ref.python"]

html_theme = "furo"
html_title = f"Tilework {release}"
html_copy_source = False
html_show_sphinx = False
