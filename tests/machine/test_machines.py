"""Machine descriptions: what is told of each, how they are found, and the host's caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilework.codegen.cpu.jit import Jit
from tilework.codegen.cpu.llvm import verify_text
from tilework.errors import UsageError
from tilework.machine.finder import machine, names
from tilework.machine.host import detect, read_caches

EMPTY = "define void @nothing() {\n  ret void\n}\n"


def test_the_machines_there_are() -> None:
    assert names() == ("host", "aarch64", "alderlake", "x86-64-v3", "x86-64-v4", "znver4")


@pytest.mark.parametrize("name", names())
def test_every_machine_is_one_that_llvm_knows(name: str) -> None:
    found = machine(name)
    assert found.name == name
    assert found.architecture in ("x86", "aarch64")
    assert found.vector_bits in (128, 256, 512)
    assert found.lanes(32) * 32 == found.vector_bits
    assert [c.level for c in found.caches] == sorted(c.level for c in found.caches)
    assert found.last_level_bytes >= 1 << 20
    first = found.cache(1)
    assert first is not None
    assert first.line_bytes == 64
    verify_text(EMPTY, found)
    Jit().compile_object(EMPTY, found)


def test_features() -> None:
    v3, v4 = machine("x86-64-v3"), machine("x86_64_v4")
    assert v3.has("avx2", "fma", "f16c")
    assert not v3.has("avx512f")
    assert v4.has("avx512f", "avx512vl")
    assert v4.available > v3.available
    assert (v3.vector_registers, v4.vector_registers, machine("aarch64").vector_registers) == (16, 32, 32)


def test_an_unknown_machine() -> None:
    with pytest.raises(UsageError) as caught:
        machine("x86-64-v5")
    assert caught.value.code == 1620
    assert "x86-64-v4" in str(caught.value)


def test_the_host_is_a_machine_without_caches_too(tmp_path: Path) -> None:
    found = detect(tmp_path / "nowhere")
    assert found.cache(1) is not None
    assert found.cpu


def test_caches_from_the_operating_system(tmp_path: Path) -> None:
    def entry(number: int, **facts: str) -> None:
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for key, value in facts.items():
            (folder / key).write_text(value + "\n")

    entry(
        0, level="1", type="Data", size="48K", ways_of_associativity="12", coherency_line_size="64", shared_cpu_list="0"
    )
    entry(1, level="1", type="Instruction", size="32K")
    entry(2, level="2", type="Unified", size="1024K", ways_of_associativity="16")
    entry(3, level="3", type="Unified", size="32M", shared_cpu_list="0-3,8")
    entry(4, level="4", type="Unified", size="much")
    (tmp_path / "uevent").write_text("")
    first, second, third = read_caches(tmp_path)
    assert (first.bytes, first.ways, first.shared_by) == (48 << 10, 12, 1)
    assert (second.bytes, second.ways) == (1 << 20, 16)
    assert (third.bytes, third.shared_by) == (32 << 20, 5)
