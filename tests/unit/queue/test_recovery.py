"""What reading a partition back leaves in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from services.queue.machine.message import Interned, MemoryAccount
from services.queue.machine.options import read_options
from services.queue.partitions.recovery import Contents, Recovery
from services.rpc.queue_pb2 import PublishBatch, PublishRun
from services.rpc.store_pb2 import EntryBatch, EntryColumns, RecoveredBatch

ORIGIN = 5
UID = (ORIGIN << 39) + 1
LARGE = 64 << 20  # bytes: more than the allocator keeps for itself when it is given back


def recovered() -> Recovery:
    """One large message, which its publisher may send again."""
    recovery = Recovery(MemoryAccount(), 2, 0, lambda _: None, lambda *_: None)
    columns = PublishBatch(uids=[UID], bodies=[bytes(LARGE)], properties=[b""], runs=[PublishRun(count=1)])
    entries = EntryColumns(queue_id=[1], first=[0], count=[1], position=[0])
    batch = RecoveredBatch(columns=columns.SerializeToString())
    batch.entries.CopyFrom(EntryBatch(id=1, count=1, entries=entries.SerializeToString()))
    recovery.known.recover_floor(ORIGIN, UID)
    contents = Contents(Interned())
    contents.take(batch)
    recovery.add(batch, contents)
    return recovery


def resident() -> int:
    """Bytes that this process occupies."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_is_known_of_messages_keeps_no_bodies() -> None:
    """What may be sent again is remembered by number: the message goes with its entry, and is there once until then.

    Asked of a process that does nothing else: what other tests had before decides what an allocator gives back.
    """
    measured = subprocess.run([sys.executable, "-m", __name__], check=True, capture_output=True, text=True).stdout
    with_entries, without = [int(each) for each in measured.split()]
    assert with_entries < 1.5 * LARGE
    assert without < LARGE / 2


def test_what_is_known_of_messages_is_their_numbers() -> None:
    """Of a partition read back, what may be sent again is one span."""
    assert list(recovered().known.spans()) == [(1, UID, 1)]


def test_when_it_expires() -> None:
    """As its queue had it: from when it was received, no sooner than after the least time to live."""
    options = read_options(1, "/", "q", 0, {"minimumMessageTtl": 20})
    recovery = Recovery(MemoryAccount(), 2, 0, {1: options}.get, lambda *_: None)
    run = PublishRun(count=1, ttl_ms=5)
    columns = PublishBatch(uids=[UID], bodies=[b""], properties=[b""], runs=[run], time_ms=100)
    batch = RecoveredBatch(columns=columns.SerializeToString())
    for queue_id in (1, 2):
        entries = EntryColumns(queue_id=[queue_id], first=[0], count=[1], position=[0])
        batch.entries.CopyFrom(EntryBatch(id=queue_id, count=1, entries=entries.SerializeToString()))
        contents = Contents(Interned())
        contents.take(batch)
        recovery.add(batch, contents)
    assert [entry.expires for each in (1, 2) for entry in recovery.in_order()[each]] == [120, 105]


def measure() -> None:
    """Prints how many bytes a partition read back occupies with its entries, and without them."""
    recovered()  # what the first of a kind takes for good
    before = resident()
    recovery = recovered()
    sys.stdout.write(f"{resident() - before}\n")
    recovery.entries.clear()
    sys.stdout.write(f"{resident() - before}\n")


if __name__ == "__main__":
    measure()
