"""Keys and entries: what shares a key, and that no byte of an entry can change unseen."""

from __future__ import annotations

import numpy as np
import pytest

from tilework.cache.entry import ALIGNMENT, FORMAT, MAGIC, DamagedError, Entry, decoded
from tilework.cache.hashing import BLOCK, checksum
from tilework.cache.keys import LONGEST, Key, key_of

PARTS = {"text": "define\nvoid", "cpu": "znver3", "features": "+avx2"}
ENTRY = Entry(key_of("object", PARTS), {"object": bytes(range(200)), "empty": b""})


def test_the_order_of_parts_does_not_matter() -> None:
    assert key_of("object", dict(reversed(PARTS.items()))).digest == ENTRY.key.digest


def test_every_part_and_the_kind_matter() -> None:
    others = [key_of("plan", PARTS), key_of("object", {**PARTS, "more": ""})]
    others += [key_of("object", {**PARTS, name: PARTS[name] + "x"}) for name in PARTS]
    others += [key_of("object", {n: t for n, t in PARTS.items() if n != name}) for name in PARTS]
    # a border between two texts cannot move
    others += [key_of("object", {"text": "define\nvoid", "cpuznver3": "", "features": "+avx2"})]
    assert len({ENTRY.key.digest, *(key.digest for key in others)}) == len(others) + 1


def test_differences_name_the_parts() -> None:
    other = key_of("object", {"text": PARTS["text"], "cpu": "znver4", "new": "1"})
    assert ENTRY.key.differences(other) == (("cpu", "znver3", "znver4"), ("features", "+avx2", ""), ("new", "", "1"))
    assert ENTRY.key.differences(ENTRY.key) == ()


def test_long_texts_are_known_by_their_digest() -> None:
    long = "x" * (LONGEST + 1)
    ((_, kept),) = key_of("a", {"t": long}).parts
    assert kept.startswith("sha256:")
    assert key_of("a", {"t": long}).digest != key_of("a", {"t": "y" + long[1:]}).digest


def test_an_entry_reads_back() -> None:
    assert decoded(ENTRY.encoded()) == ENTRY
    assert decoded(Entry(Key("none", ()), {}).encoded()) == Entry(Key("none", ()), {})


def test_every_flipped_byte_is_seen() -> None:
    raw = ENTRY.encoded()
    rng = np.random.default_rng(0)
    for at in range(len(raw)):
        other = bytearray(raw)
        other[at] ^= int(rng.integers(1, 256))
        with pytest.raises(DamagedError):
            decoded(bytes(other))


def test_every_shorter_or_longer_file_is_seen() -> None:
    raw = ENTRY.encoded()
    for size in range(len(raw)):
        with pytest.raises(DamagedError):
            decoded(raw[:size])
    with pytest.raises(DamagedError):
        decoded(raw + b"\0")


@pytest.mark.parametrize(
    "head",
    [b"", b"[]", b"{}", b'{"kind":1,"parts":1,"sections":[]}', b'{"kind":"a","parts":[["x"]],"sections":[]}',
     b'{"kind":"a","parts":[],"sections":[["s",-1]]}', b'{"kind":"a","parts":[],"sections":[["s",9]]}', b"\xff"],
)  # fmt: skip
def test_heads_that_make_no_sense_are_refused_though_their_checksum_is_right(head: bytes) -> None:
    body = MAGIC + FORMAT.to_bytes(4, "little") + len(head).to_bytes(4, "little") + head
    with pytest.raises(DamagedError):
        decoded(body + checksum(body))


def test_another_format_is_refused() -> None:
    raw = bytearray(ENTRY.encoded()[:-32])
    raw[8] += 1
    with pytest.raises(DamagedError, match="format"):
        decoded(bytes(raw) + checksum(bytes(raw)))


def test_sections_are_aligned_and_may_be_larger_than_a_block() -> None:
    rng = np.random.default_rng(1)
    contents = {str(size): rng.bytes(size) for size in (0, 1, 63, 64, 65, BLOCK, 2 * BLOCK + 17, 3)}
    entry = Entry(key_of("large", {}), contents)
    raw = entry.encoded()
    assert decoded(raw) == entry
    assert all(raw.index(content) % ALIGNMENT == 0 for content in contents.values() if len(content) > 60)
    for at in (BLOCK - 1, BLOCK, 2 * BLOCK + 5, len(raw) - 33):
        other = bytearray(raw)
        other[at] ^= 1
        with pytest.raises(DamagedError):
            decoded(bytes(other))
