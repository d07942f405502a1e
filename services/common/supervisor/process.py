"""A program's process as its keeper sees it, and how one is started from its command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from services.common.supervisor.program import Program


class Process(Protocol):
    """Of asyncio's own kind, or one that was forked."""

    @property
    def pid(self) -> int:
        """Its process id."""

    @property
    def stdout(self) -> asyncio.StreamReader | None:
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


async def execute(program: Program, environment: Mapping[str, str]) -> Process:
    """As Start says, from its command. Raises OSError."""
    return await asyncio.create_subprocess_exec(
        *program.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(environment),
        # Ctrl-C goes to a terminal's whole process group, and the order of stopping is the supervisor's affair.
        start_new_session=True,
    )
