"""What a process may use, in any control group."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.common.memory import available, beside_its_own, count_with, for_messages, largest_message, share

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20


def limited(root: Path, folder: str, name: str, value: object) -> None:
    file = root / "sys/fs/cgroup" / folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{value}\n")


V1 = "9:name=systemd:/\n4:memory:/outer/inner\n0::/\n"
V2 = "0::/outer/inner\n"


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        (V2, [("outer/inner", "memory.max", 512 * MIB)], 512 * MIB),
        (V2, [("outer/inner", "memory.max", "max"), ("outer", "memory.max", 256 * MIB)], 256 * MIB),
        (V2, [("outer/inner", "memory.max", 512 * MIB), ("outer", "memory.high", 300 * MIB)], 300 * MIB),
        (V2, [("outer/inner", "memory.max", "max")], MACHINE),
        ("0::/\n", [("", "memory.max", 128 * MIB)], 128 * MIB),
        (V1, [("memory/outer/inner", "memory.limit_in_bytes", 512 * MIB)], 512 * MIB),
        (V1, [("memory", "memory.limit_in_bytes", 128 * MIB)], 128 * MIB),
        (V1, [("memory/outer/inner", "memory.limit_in_bytes", 9223372036854771712)], MACHINE),
        ("", [], MACHINE),
    ],
)
def test_the_narrowest_limit_counts(
    tmp_path: Path, groups: str, limits: list[tuple[str, str, object]], expected: int
) -> None:
    """That of the process's group, of one around it, or the machine's; of a container whose root is its group too."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for limit in limits:
        limited(tmp_path, *limit)
    assert available(tmp_path) == expected


def test_without_control_groups(tmp_path: Path) -> None:
    """Where there are none the machine's memory counts."""
    assert available(tmp_path) == MACHINE


def test_what_several_have() -> None:
    """Processes that share a machine count with their part of it."""
    share(4)
    part = available()
    share(1)
    assert part == available() // 4


def test_shares() -> None:
    """Queue processes share the memory, and leave more than half of it to all else; a gibibyte is enough."""
    assert for_messages(512 * MIB, 1) == int(0.4 * 512 * MIB)
    assert for_messages(512 * MIB, 2) == int(0.2 * 512 * MIB)
    assert for_messages(64 << 30, 2) == 1 << 30
    assert largest_message(512 * MIB) > 16 * MIB > largest_message(256 * MIB)


def test_no_more_than_it_is_told() -> None:
    """A process that is told how much there is counts with that, and never with more than the machine has."""
    try:
        count_with(100 * MIB)
        assert available() == 100 * MIB
        count_with(MACHINE * 2)
        assert available() <= MACHINE
    finally:
        count_with(0)


def test_what_a_stack_takes_itself() -> None:
    """It is not there for messages; of little memory a quarter is, and much memory loses nearly nothing."""
    assert beside_its_own(1024 * MIB, 10) == (1024 - 192 - 240) * MIB
    assert beside_its_own(400 * MIB, 10) == 100 * MIB
    assert beside_its_own(32 << 30, 10) > 31 << 30
