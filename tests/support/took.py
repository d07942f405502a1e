"""Durations that are printed and not asserted: `pytest -rP` shows them."""

from __future__ import annotations

import time


class Took:
    """Since it was made."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()

    def put_down(self) -> None:
        """It has come about."""
        print(f"{self._what}: {time.monotonic() - self._began:.2f} s")  # noqa: T201 - shown by `pytest -rP`
