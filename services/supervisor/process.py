"""A program's process as `Child` sees it, and the type of what starts one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from services.supervisor.program import Program


class Process(Protocol):
    """A process that was executed, or forked."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def stdout(self) -> asyncio.StreamReader:
        """Its output, of both stdout and stderr."""

    @property
    def returncode(self) -> int | None:
        """Its exit status, or the negative number of the signal that killed it. None while it runs."""

    async def wait(self) -> int:
        """Returns `returncode` when it has ended."""

    def send_signal(self, number: int, /) -> None:
        """Sends a signal; does nothing to a process that has ended."""


Start = Callable[[Program, Mapping[str, str]], Awaitable[Process]]
"""Starts a program in a session of its own, with this environment and nothing to read."""
