"""Pins: configuration records of kind `placement` that say which queue process should own a partition.

The key is the partition, the value names the member: one run of one process. A pin to a member that is not alive has no
effect, so a partition never waits for a member.
"""

from __future__ import annotations

import json

from services.rpc.store_pb2 import Record

RECORD_KIND = "placement"


def pin_record(partition: int, member: str) -> Record:
    """Pins `partition` to `member`; survives a restart of the store."""
    return Record(kind=RECORD_KIND, key=str(partition), value=json.dumps({"member": member}).encode())


def pin_key(partition: int) -> Record:
    """The record by which the pin of `partition` is deleted."""
    return Record(kind=RECORD_KIND, key=str(partition))


def read_pin(record: Record) -> tuple[int, str]:
    """Partition and member."""
    return int(record.key), str(json.loads(record.value)["member"])
