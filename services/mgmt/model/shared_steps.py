"""What several wait for, made once: each step that one of them takes brings all of them forward. Pure."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, Generic, TypeVar

_T = TypeVar("_T")


class SharedSteps(Generic[_T]):
    """Who goes meanwhile leaves the rest to the others."""

    def __init__(self, steps: Generator[None, None, _T]) -> None:
        self._steps: Final = steps
        self._made = list[_T]()
        self._fault: Exception | None = None

    @property
    def failed(self) -> bool:
        """Nothing comes of it: who wants it begins anew."""
        return self._fault is not None

    def follow(self) -> Generator[None, None, _T]:
        """For one of them. Raises what the steps raise, for each."""
        while not self._made:
            self._go_on()
            yield
        return self._made[0]

    def _go_on(self) -> None:
        if self._fault:
            raise self._fault
        try:
            next(self._steps)
        except StopIteration as done:
            self._made.append(done.value)
        except Exception as fault:
            self._fault = fault
            raise
