"""A store of two files, configuration in the one and messages in the other, that fails where it is told to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.common.errors import InternalError
from services.store.choice import Choice, with_configuration
from services.store.provider import Changes, LeaseRow, RecordRow

QUEUE = RecordRow("queue", "a", b"{}", 1)
LEASE = LeaseRow("partition/1", 1, "m1", "queue")


class Crash(Exception):
    """The process is gone."""


def two(folder: Path) -> Any:
    """Both in files."""
    return with_configuration(Choice("sqlite"), "sqlite:", "it").make(folder)


def mixed() -> Changes:
    """A group with a record and a lease in it."""
    return Changes(records={("queue", "a"): QUEUE}, leases={"partition/1": LEASE})


def fail(half: Any, times: int = 1) -> list[Changes]:
    """The next commits to the half fail; gives those that reach the provider, failed or not."""
    commit, seen = half.provider.commit, []

    async def failing(changes: Changes) -> None:
        seen.append(changes)
        if len(seen) <= times:
            raise Crash
        await commit(changes)

    half.provider.commit = failing
    return seen


async def reopened(folder: Path) -> Any:
    """Another process, on what is on disk."""
    provider = two(folder)
    await provider.open()
    return provider


async def refused(folder: Path) -> str:
    with pytest.raises(InternalError) as found:
        await reopened(folder)
    return found.value.text


async def made(folder: Path, provider: Callable[[Path], Any]) -> None:
    one = provider(folder)
    await one.open()
    await one.begin_incarnation()
    await one.commit(mixed())
    await one.close()
