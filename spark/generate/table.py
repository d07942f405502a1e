"""Makes a table of stages of columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from spark.generate.batches import Bools, Ints, partition
from spark.generate.rows import NO_QUEUE, OUTCOMES, QUEUE, REASONS
from spark.schema import STAGE_NAMES, STAGES, arrow_schema

_QUEUE_PROCESSES = 2
_BYTES_OF_MESSAGE = 256
_CLIENTS = 16
_GATEWAYS = 10
_OF_CONSUMERS = [STAGE_NAMES.index(name) for name in ("delivered", "settled", "sent")]


@dataclass(slots=True)
class Instances:
    """How many rows each instance told so far."""

    told: dict[int, int] = field(default_factory=dict)

    def number(self, instance: Ints, time: Ints) -> Ints:
        """Numbers for rows: each instance counts its own, in order of time."""
        order = np.lexsort((time, instance))
        rows = np.empty(len(order), np.int64)
        for one in np.unique(instance):
            mine = order[np.searchsorted(instance[order], one) : np.searchsorted(instance[order], one, "right")]
            rows[mine] = self.told.get(one, 0) + 1 + np.arange(len(mine))
            self.told[one] = self.told.get(one, 0) + len(mine)
        return rows


def stages_table(columns: dict[str, Ints], instances: Instances, names: list[tuple[str, str]]) -> pa.Table:
    """The table that a filer would write of these rows."""
    count, uids = _ranges(columns)
    made = {
        "time": pa.array(columns["time"], pa.timestamp("us", "UTC")),
        "stage": _words(columns["stage"], STAGE_NAMES),
        **_tellers(columns, instances),
        **_destinations(columns, names),
        **_peers(columns),
        "attempt": pa.array(columns["attempt"].astype(np.int32)),
        "outcome": _words(columns["outcome"], OUTCOMES),
        "reason": _words(columns["reason"], REASONS),
        "target": _words(np.where(columns["successor"] > 0, 1, 0), ("", "dlx")),
        "count": pa.array(count.astype(np.int32)),
        "bytes": pa.array(count * _BYTES_OF_MESSAGE),
        "first_uid": pa.array(columns["first"]),
        "last_uid": pa.array(np.maximum(columns["end"], columns["second_end"]) - 1),
        "uids": uids,
        "successors": _successors(columns),
    }
    schema = arrow_schema(STAGES)
    return pa.table([made[name] for name in schema.names], schema)


def _tellers(columns: dict[str, Ints], instances: Instances) -> dict[str, pa.Array]:
    service = columns["service"]
    process = (partition(columns["queue"]) + columns["epoch"]) % _QUEUE_PROCESSES
    instance = np.where(service == QUEUE, _GATEWAYS + process, columns["gateway"])
    called = [f"gateway-{n}" for n in range(_GATEWAYS)] + [f"queue-{n}" for n in range(_QUEUE_PROCESSES)]
    return {
        "service": _words(service, ("gateway", "queue")),
        "instance": _words(instance, called),
        "row": pa.array(instances.number(instance, columns["time"])),
    }


def _destinations(columns: dict[str, Ints], names: list[tuple[str, str]]) -> dict[str, pa.Array]:
    queue, none = columns["queue"], len(names)
    in_queue = queue != NO_QUEUE
    queues = [*(name for _, name in names), ""]
    where = np.maximum(queue, 0)
    return {
        "virtual_host": _words(where, [host for host, _ in names]),
        "exchange": _words(np.where(in_queue, 0, 1), ("", "amq.direct")),
        "routing_key": _words(np.where(columns["service"] == QUEUE, none, where), queues),
        "queue": _words(np.where(in_queue, queue, none), queues),
        "partition": pa.array(np.where(in_queue, partition(queue), -1).astype(np.int32)),
        "epoch": pa.array(columns["epoch"]),
    }


def _peers(columns: dict[str, Ints]) -> dict[str, pa.Array]:
    consuming = np.isin(columns["stage"], _OF_CONSUMERS)
    client = np.where(consuming, _CLIENTS + columns["queue"] % _CLIENTS, columns["first"] % _CLIENTS)
    called = [f"producer-{n}" for n in range(_CLIENTS)] + [f"consumer-{n}" for n in range(_CLIENTS)]
    return {
        "protocol": _words(np.zeros(len(client), np.int64), ("amqp-0-9",)),
        "connection": _words(client, [f"connection-{n}" for n in range(2 * _CLIENTS)]),
        "client": _words(client, called),
        "consumer": _words(np.where(consuming, 1, 0), ("", "ctag-1")),
    }


def _ranges(columns: dict[str, Ints]) -> tuple[Ints, pa.Array]:
    two = columns["second_end"] > columns["second"]
    count = columns["end"] - columns["first"] + np.where(two, columns["second_end"] - columns["second"], 0)
    offsets = np.concatenate([[0], np.cumsum(1 + two)])
    first, last = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    first[offsets[:-1]], last[offsets[:-1]] = columns["first"], columns["end"] - 1
    first[offsets[1:][two] - 1], last[offsets[1:][two] - 1] = columns["second"][two], columns["second_end"][two] - 1
    return count, _list(offsets, first, last)


def _successors(columns: dict[str, Ints]) -> pa.Array:
    has: Bools = columns["successor"] > 0
    first = columns["successor"][has]
    last = first + (columns["end"] - columns["first"])[has] - 1
    return _list(np.concatenate([[0], np.cumsum(has)]), first, last)


def _list(offsets: Ints, first: Ints, last: Ints) -> pa.Array:
    ranges = pa.StructArray.from_arrays([pa.array(first), pa.array(last)], ["first", "last"])
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), ranges)


def _words(codes: Ints, words: tuple[str, ...] | list[str]) -> pa.Array:
    # Names may be repeated in `words`, and a dictionary must not.
    distinct = list(dict.fromkeys(words))
    place = np.array([distinct.index(word) for word in words], np.int32)
    return pa.DictionaryArray.from_arrays(place[codes], pa.array(distinct)).cast(pa.string())
