"""A store in a process of its own, to be killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

from services.common.config import Settings
from services.common.grpc_channel import is_serving

_MAIN = """
import json
import sys
from services.common.config import Settings
from services.common.runtime import run
from services.store.providers import standstill
from services.store.service import Service

name, silent, settings = sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3])
standstill.SILENT_SECONDS = silent or standstill.SILENT_SECONDS

async def create():
    return Service(Settings(**settings), name=name)

run(create)
"""


class StoreProcess:
    """`start` and `kill` as often as wanted, on one folder."""

    def __init__(self, folder: Path, name: str = "store", silent: float = 0.0, **more: Any) -> None:
        """`more` settings; `silent`: seconds after which it takes another for dead, if not as many as ever."""
        self.folder = folder
        self.name = name
        self._arguments = (name, str(silent), json.dumps({"data": str(folder), **more}))
        settings = Settings(data=folder, **more)
        self.address = settings.store_process_address or settings.address_of(name)
        self.log = folder.with_name(f"{folder.name}-{name}.log")
        self.process: asyncio.subprocess.Process = None  # type: ignore[assignment]

    async def start(self) -> None:
        """Returns when it says that it serves, or stands by."""
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _MAIN, *self._arguments, stdout=log, stderr=log
            )
        async with asyncio.timeout(20):
            while not await is_serving(self.address):
                assert self.process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.05)

    async def pause(self) -> None:
        """SIGSTOP: its sockets are open, and it does not answer."""
        self.process.send_signal(signal.SIGSTOP)
        status = Path(f"/proc/{self.process.pid}/stat")
        while (await asyncio.to_thread(status.read_text)).rpartition(") ")[2][0] != "T":
            await asyncio.sleep(0.001)

    def resume(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        if self.process.returncode is None:
            self.process.terminate()
            self.resume()
        return await self.process.wait()
