"""A process that files and looks up does not grow by the hour: all that it does in two of them, without the waiting."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from services.common import clock
from services.common.ledger.encoding import Sealed
from services.common.ledger.place import LedgerPlace
from services.common.ledger.row_recorder import RowRecorder
from services.common.message.amqp_0_9 import compose
from services.mgmt.ledger.cabinet import Cabinet
from services.mgmt.ledger.decode import decode
from services.mgmt.ledger.drawer import Drawer
from services.mgmt.ledger.tidying import Limits, Tidying
from services.mgmt.lookup.lookup import LookUp
from services.rpc.ledger_pb2 import ENQUEUED, RECEIVED, SETTLED, LedgerBatch
from tests.unit.mgmt.ledger.test_merging_memory import own_memory

EVERY = 30  # seconds between two filings: a third as many as there are
HOUR = 3600 // EVERY
TIDY = 2  # filings between two looks of what tidies
ASK = 8  # filings between two questions
STAGES = (RECEIVED, ENQUEUED, SETTLED)
MOST = 6 << 20  # bytes an hour


class Later:
    """A clock that is moved on by hand."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000 // 3600 * 3600

    def monotonic(self) -> float:
        return float(self.seconds)

    def time_ns(self) -> int:
        return self.seconds * 1_000_000_000


class Hours:
    """What mgmt does with the record of messages."""

    def __init__(self, folder: Path) -> None:
        self._time = Later()
        clock.set_source(self._time)
        self._cabinet = Cabinet(folder, clock_ns=self._time.time_ns)
        self._cabinet.open()
        self._tidying = Tidying(self._cabinet, Limits(1e6, 1 << 40))
        self._drawer = Drawer()
        self._look_up = LookUp(folder, self._drawer.tables)
        self._sealed: list[Sealed] = []
        self._recorder = RowRecorder("queue", "queue-1-a", self._sealed.append)
        self._filed = 0

    async def pass_an_hour(self) -> None:
        for _ in range(HOUR):
            self._time.seconds += EVERY
            self._file()
            if self._filed % TIDY == 0 and (change := self._tidying.prepare(self._time.seconds)):
                self._tidying.carry_out(change)
            if self._filed % ASK == 0:
                assert (await self._look_up.trace(f"order-{self._filed}")).journeys

    def _file(self) -> None:
        self._filed += 1
        self._drawer.put(decode([self._batch()]))
        change = self._cabinet.prepare(self._drawer.take())
        self._cabinet.commit(change, {"queue-1-a": self._filed})
        self._drawer.done()

    def _batch(self) -> LedgerBatch:
        uid = 7 << 39 | self._filed
        properties = compose({"message-id": f"order-{self._filed}"}, {}, persistent=True, priority=0)
        self._recorder.identify("amqp-0-9", [uid], [properties])
        for stage in STAGES:
            place = LedgerPlace("/", "", f"key-{self._filed % 50}", "q", 3, 7, connection="1.1", client="app")
            self._recorder.record(stage, place, [uid])
        self._recorder.seal()
        return LedgerBatch.FromString(self._sealed.pop().payload)


def test_memory_stays_as_it_was_after_the_first_hour(tmp_path: Path) -> None:
    """Asked of a process that does nothing else; what the first of a kind takes for good does not count."""
    done = subprocess.run([sys.executable, "-m", __name__, str(tmp_path)], check=True, capture_output=True, text=True)
    assert int(done.stdout) < MOST


async def measure(folder: Path) -> None:
    """Prints by how many bytes this process grew in its second hour."""
    hours = Hours(folder)
    await hours.pass_an_hour()
    before = own_memory()
    await hours.pass_an_hour()
    sys.stdout.write(f"{own_memory() - before}\n")


if __name__ == "__main__":
    asyncio.run(measure(Path(sys.argv[1])))
