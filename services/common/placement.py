"""Pins: configuration records of kind `placement` that say which queue process shall have a partition.

The key is the partition, the value names the member: one run of one process. A pin to a member that is not alive says
nothing, so a partition never waits for anybody.
"""

from __future__ import annotations

import json

from services.rpc.store_pb2 import Record

RECORD_KIND = "placement"


def pin_record(partition: int, member: str) -> Record:
    """Pins `partition` to `member`; it outlives the store."""
    return Record(kind=RECORD_KIND, key=str(partition), value=json.dumps({"member": member}).encode())


def pin_key(partition: int) -> Record:
    """To delete the pin of `partition` by."""
    return Record(kind=RECORD_KIND, key=str(partition))


def read_pin(record: Record) -> tuple[int, str]:
    """Partition and member."""
    return int(record.key), str(json.loads(record.value)["member"])
