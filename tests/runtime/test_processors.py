"""How many processors: affinity, quotas of control groups of both kinds, settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilework.errors import UsageError
from tilework.runtime.processors import available_processors, thread_count


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


AFFINITY = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.fixture
def sixteen(monkeypatch: pytest.MonkeyPatch):
    def affinity(_process: int) -> set[int]:
        return set(range(16))

    monkeypatch.setattr(os, "sched_getaffinity", affinity, raising=False)


def test_no_control_groups(tmp_path: Path):
    assert available_processors(tmp_path) == AFFINITY


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 16), ("250000 100000", 3), ("1000 100000", 1), ("", 16)]
)
def test_quota_of_version_2(sixteen: None, tmp_path: Path, quota: str, expected: int):
    tree(tmp_path, {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": quota})
    assert available_processors(tmp_path) == expected


def test_smallest_quota_of_all_groups_around(sixteen: None, tmp_path: Path):
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "800000 100000",
            "sys/fs/cgroup/a/cpu.max": "400000 100000",
        },
    )
    assert available_processors(tmp_path) == 4


def test_group_seen_from_inside_a_container(sixteen: None, tmp_path: Path):
    tree(tmp_path, {"proc/self/cgroup": "0::/host/path\n", "sys/fs/cgroup/cpu.max": "200000 100000"})
    assert available_processors(tmp_path) == 2


@pytest.mark.parametrize(("quota", "expected"), [("-1", 16), ("150000", 2), ("nonsense", 16)])
def test_quota_of_version_1(sixteen: None, tmp_path: Path, quota: str, expected: int):
    tree(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/x\n",
            "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": quota,
            "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000",
        },
    )
    assert available_processors(tmp_path) == expected


def test_settings_in_their_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TILEWORK_NUM_THREADS", raising=False)
    assert 1 <= thread_count() <= AFFINITY
    monkeypatch.setenv("TILEWORK_NUM_THREADS", "7")
    assert thread_count() == 7
    assert thread_count(3) == 3
    for text in ("0", "-1", "many", "1.5", "5000"):
        monkeypatch.setenv("TILEWORK_NUM_THREADS", text)
        with pytest.raises(UsageError) as caught:
            thread_count()
        assert caught.value.code == 1002
        assert "TILEWORK_NUM_THREADS" in caught.value.message
        assert "TILEWORK_NUM_THREADS" in caught.value.where


@pytest.mark.parametrize("setting", [0, -1, 10**6])
def test_settings_that_make_no_sense(setting: int):
    with pytest.raises(UsageError) as caught:
        thread_count(setting)
    assert caught.value.code == 1002
