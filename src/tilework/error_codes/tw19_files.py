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
    1903: CodeInfo(
        "package not read",
        "A `.tilework` file cannot be read, is damaged, is none, or was written by another version.",
        "Write it again: `Executable.save`, or `tilework compile MODEL -o FILE.tilework`.",
    ),
    1904: CodeInfo(
        "package not trusted",
        "A `.tilework` file or an archive of the cache holds machine code, and somebody else owns it or may write it.",
        "Make it yours alone (`chown`, `chmod go-w`) if you know where it comes from; else write it again.",
    ),
    1905: CodeInfo(
        "not to be saved",
        "An executable runs something that no file can hold, such as Python functions.",
        "Compile the model where it runs.",
    ),
    1906: CodeInfo(
        "archive not read",
        "A file cannot be read as an archive of the cache: it is none, damaged, or not whole. Nothing of it was kept.",
        "Write it again with `tilework cache export`.",
    ),
}
