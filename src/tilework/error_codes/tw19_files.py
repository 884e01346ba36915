"""Codes 1900 to 1999: files and packages."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1901: CodeInfo(
        "file not written",
        "A file could not be written; no part of it is left.",
        "Choose a folder that exists and can be written.",
    ),
    1902: CodeInfo(
        "file not read",
        "A file of input data does not exist or does not hold what it should.",
        "Give the path of a readable file; `numpy.save` writes `.npy` files.",
    ),
}
