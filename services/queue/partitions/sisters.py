"""Queue processes that `hopline up` starts beside this one: expected by name before the store knows of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def sisters_of(name: str, processes: int) -> list[str]:
    """Names of the others of so many; none in a container, which is named after its host and cannot know the others."""
    names = [f"queue-{number}" for number in range(1, processes + 1)]
    return [each for each in names if each != name] if name in names else []


def missing(sisters: Iterable[str], members: Collection[str]) -> set[str]:
    """The sisters of which no run is among `members`, which are named as in `member_of`."""
    return {name for name in sisters if not any(member.startswith(f"{name}-") for member in members)}


def member_of(name: str, run: str) -> str:
    """The member name of one run of a process."""
    return f"{name}-{run}"
