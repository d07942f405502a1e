"""How many letters are sent at once."""

from __future__ import annotations

from collections import deque
from typing import Protocol, TypeVar

from services.common.message.weight import FRAME_BYTES


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


L = TypeVar("L", bound=_Sized)


def some_of(line: deque[L], most: int) -> list[L]:
    """Takes the first `most` letters out, or as many as fit into a frame, one at least."""
    some = [line.popleft()]
    size = some[0].size
    while line and len(some) < most and (size := size + line[0].size) <= FRAME_BYTES:
        some.append(line.popleft())
    return some
