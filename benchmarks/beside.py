"""What a client waits for that does one thing after the other, beside others that send as much as is taken.

The flood goes to 100 queues in turn, half of it persistent, with confirms and acknowledgements; its clients are
processes of their own on the same machine, so that all of them and the broker share its cores. Whoever compares two
versions has to keep others off these, or to let all of it go first: `chrt -r 1` for the broker's threads, the flood and
the probe, and a rate that leaves some of the cores to the rest.

So measured (2 cores, 2026-11-30), a confirm beside 6,600 messages a second takes 3.8 to 7 ms, of which other messages
are less than one at each stage: gateway, queue process, journal frame, commit under way (1.5), confirm. What a message
costs depends on how many of its queue come with it: 240 to 270 µs of processors, of all processes, where each is the
only one in its batch, 95 where there are three. Turns are long because processors are busy, and cheap because they are
long. Hence all of this left a confirm where it was, within what runs differ by, or cost the flood as much as it gained:

- turns of two milliseconds in gateway and queue process, small reads and frames before others: 90 instead of 110 ms
  where clients have most of the processors, and half the flood;
- other work between two frames of one read; with it, streams of their own for those that have nothing under way;
- frames held back until the peer has read the one before (SIOCOUTQ), so that they grow where they wait;
- consumers' credit told of by quarters instead of with each acknowledgement: under 1 % of processor time;
- turns of 300 µs asked of the kernel (sched_setattr, 1.4 ms without): 9 instead of 12 ms, and a fifth to a third fewer
  messages to 100 queues, as batches get smaller.

More weight for the broker than for its clients (a niceness of -10 in the kernel's groups, CPUWeight in systemd's) takes
the median from 19 to 8 ms, the 99th percentile from 125 to 59, and nothing from the flood.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.load import Load
from benchmarks.properties import properties
from benchmarks.result import Result
from benchmarks.round_trip import round_trip
from benchmarks.sequential import confirm, get, transaction
from benchmarks.stream import Stream
from benchmarks.streams import KEYS, STREAMS
from benchmarks.throughput import flowing

if TYPE_CHECKING:
    from benchmarks.brokers import Broker
    from benchmarks.wire import Address

Measure = Callable[["Broker", "Address", float], Result]

WINDOW = 1000
"""Messages that a flood may have unconfirmed."""
RATE = 6_600.0
LARGE = 64 << 10
SEVERAL = 8


def _half_persistent(number: int) -> bytes:
    """Each queue gets both."""
    return properties(persistent=(number + number // KEYS) % 2 == 0)


_KEYS = STREAMS["keys-100"][1]
FLOOD = replace(
    _KEYS,
    confirms=True,
    acks=True,
    window=WINDOW,
    stream=replace(_KEYS.stream, properties=_half_persistent, durable=True),
)

_confirm = partial(confirm, persistent=True)

BESIDE: dict[str, tuple[str, Load, Measure]] = {
    "confirm-beside-flood": ("one confirm after the other, persistent, beside a flood to 100 queues", FLOOD, _confirm),
    "beside-paced": (f"the same, of {RATE:,.0f} messages/s", replace(FLOOD, rate=RATE), _confirm),
    "beside-one-queue": (
        "the same, to one queue",
        replace(FLOOD, queues=1, stream=Stream(properties=_half_persistent, durable=True)),
        _confirm,
    ),
    "beside-several": (f"beside {SEVERAL} floods", replace(FLOOD, producers=SEVERAL), _confirm),
    "beside-large": ("beside a flood of bodies of 64 KiB", replace(FLOOD, size=LARGE), _confirm),
    "beside-transient": ("one transient confirm after the other", FLOOD, partial(confirm, persistent=False)),
    "beside-transaction": ("transactions of one persistent message", FLOOD, transaction),
    "beside-get": ("basic.get", FLOOD, get),
    "beside-round-trip": ("one message at a time, from publisher to consumer", FLOOD, round_trip),
}
"""By name: a title, the flood, and what is measured beside it."""


def beside(load: Load, measure: Measure, broker: Broker, address: Address, seconds: float) -> Result:
    """What `measure` gives while `load` flows, whose rate is a note. Processor time is that of both."""
    with flowing(load, address) as flow:
        started, before = time.monotonic(), flow.consumed
        result = measure(broker, address, seconds)
        flow.generator.check()
        rate = (flow.consumed - before) / (time.monotonic() - started)
    return Result(result.figures, notes={"flood, messages/s": rate})
