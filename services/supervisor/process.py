"""A program's process as its keeper sees it, and what starts one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from services.supervisor.program import Program


class Process(Protocol):
    """One that was executed, or forked."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def stdout(self) -> asyncio.StreamReader:
        """What it writes, to stdout and to stderr."""

    @property
    def returncode(self) -> int | None:
        """Its exit status, or less than 0: by which signal it was killed. None while it runs."""

    async def wait(self) -> int:
        """Returns `returncode` when it has ended."""

    def send_signal(self, number: int, /) -> None:
        """Nothing happens to one that has ended."""


Start = Callable[[Program, Mapping[str, str]], Awaitable[Process]]
"""Starts a program in a session of its own, with this environment and nothing to read."""
