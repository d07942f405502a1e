"""A store in a process of its own, to be killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from services.common.config import Settings
from services.common.grpc_channel import is_serving

_MAIN = """
import sys
from pathlib import Path
from services.common.config import Settings
from services.common.runtime import run
from services.store.service import Service

async def create():
    return Service(Settings(data=Path(sys.argv[1])))

run(create)
"""


class StoreProcess:
    """`start` and `kill` as often as wanted, on one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = Settings(data=folder).address_of("store")
        self.log = folder.with_suffix(".log")
        self.process: asyncio.subprocess.Process = None  # type: ignore[assignment]

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _MAIN, str(self.folder), stdout=log, stderr=log
            )
        async with asyncio.timeout(20):
            while not await is_serving(self.address):
                assert self.process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        if self.process.returncode is None:
            self.process.terminate()
        return await self.process.wait()
