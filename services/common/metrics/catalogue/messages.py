"""Messages by the stages of the ledger (proto/ledger.proto), counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from services.common.metrics.instrument import Instrument, counter, gauge

_MESSAGE: Final = "{message}"


def _of(stage: str, help: str, *labels: str) -> Instrument:  # noqa: A002 - as in instrument.py
    return counter(f"hopline.messages.{stage}", _MESSAGE, help, *labels)


RECEIVED: Final = _of("received", "Messages read whole from their publishers.", "protocol")
RECEIVED_BYTES: Final = counter("hopline.messages.received.size", "By", "Bodies and properties of messages received.")
ROUTED: Final = _of("routed", "Copies of messages that go to a queue: one for each queue; dead letters count too.")
RETURNED: Final = _of("returned", "Messages sent back to their publishers.", "reason")
CONFIRMED: Final = _of("confirmed", "Messages whose publisher was told that they are safe, or that they are committed.")
REFUSED: Final = _of("refused", "Messages whose publisher was told that they were refused.", "reason")
ROLLED_BACK: Final = _of("rolled_back", "Messages of transactions that were rolled back, or could not be committed.")
SENT: Final = _of("sent", "Messages written to the sockets of consumers.", "protocol")
ENQUEUED: Final = _of("enqueued", "Messages put into a queue.")
PERSISTED: Final = _of("persisted", "Messages that are on disk, for one queue.")
DELIVERED: Final = _of("delivered", "Messages handed to a consumer, or to a get; each redelivery counts.")
REDELIVERED: Final = _of("redelivered", "Of those delivered: messages that had been delivered before.")
SETTLED: Final = _of(
    "settled", "Messages acknowledged or rejected; without acknowledgements they count as accepted.", "outcome"
)
REQUEUED: Final = _of("requeued", "Messages put back into their queue.", "reason")
EXPIRED: Final = _of("expired", "Messages whose time to live, or that of their queue, has ended.", "reason")
DEAD_LETTERED: Final = _of("dead_lettered", "Messages sent on to their queue's dead-letter exchange.", "reason")
DROPPED: Final = _of("dropped", "Messages that no consumer will get.", "reason")
RECOVERED: Final = _of("recovered", "Messages that a new owner of their partition has taken over.", "reason")

READY: Final = gauge("hopline.messages.ready", _MESSAGE, "Messages that wait for a consumer.")
UNSETTLED: Final = gauge("hopline.messages.unsettled", _MESSAGE, "Messages handed out and not settled.")

ALL: Final = (
    RECEIVED, RECEIVED_BYTES, ROUTED, RETURNED, CONFIRMED, REFUSED, ROLLED_BACK, SENT, ENQUEUED, PERSISTED, DELIVERED,
    REDELIVERED, SETTLED, REQUEUED, EXPIRED, DEAD_LETTERED, DROPPED, RECOVERED, READY, UNSETTLED,
)  # fmt: skip

# ------------------------------------------------------------------ of each single object, where settings ask for it

QUEUE: Final = ("virtual_host", "queue")
EXCHANGE: Final = ("virtual_host", "exchange")
CONNECTION: Final = ("virtual_host", "connection")
_APART: Final = ("reason", "outcome")


def _of_each(instrument: Instrument, whose: tuple[str, str]) -> Instrument:
    name = instrument.name.replace("hopline.messages", f"hopline.{whose[1]}.messages")
    more = tuple(label for label in instrument.labels if label in _APART)
    return replace(instrument, name=name, labels=(*whose, *more), per_object=True)


def _queues(instrument: Instrument) -> Instrument:
    return _of_each(instrument, QUEUE)


COUNTED_PER_QUEUE: Final = tuple(
    map(_queues, (ENQUEUED, DELIVERED, REDELIVERED, SETTLED, REQUEUED, EXPIRED, DEAD_LETTERED, DROPPED))
)
QUEUE_READY: Final = _queues(READY)
QUEUE_UNSETTLED: Final = _queues(UNSETTLED)
QUEUE_BYTES: Final = replace(
    gauge("hopline.queue.memory", "By", "Memory that the messages of a queue take.", *QUEUE), per_object=True
)
QUEUE_CONSUMERS: Final = replace(
    gauge("hopline.queue.consumers", "{consumer}", "Consumers of a queue.", *QUEUE), per_object=True
)
PER_QUEUE: Final = (*COUNTED_PER_QUEUE, QUEUE_READY, QUEUE_UNSETTLED, QUEUE_BYTES, QUEUE_CONSUMERS)

COUNTED_PER_EXCHANGE: Final = tuple(_of_each(each, EXCHANGE) for each in (RECEIVED, ROUTED, RETURNED, REFUSED, DROPPED))
COUNTED_PER_CONNECTION: Final = tuple(
    _of_each(each, CONNECTION) for each in (RECEIVED, CONFIRMED, RETURNED, REFUSED, SENT)
)
CONNECTION_UNSETTLED: Final = _of_each(UNSETTLED, CONNECTION)
CONNECTION_SESSIONS: Final = replace(
    gauge("hopline.connection.sessions", "{session}", "Sessions of a connection.", *CONNECTION), per_object=True
)
CONNECTION_CONSUMERS: Final = replace(
    gauge("hopline.connection.consumers", "{consumer}", "Consumers of a connection.", *CONNECTION), per_object=True
)
PER_CONNECTION: Final = (
    *COUNTED_PER_CONNECTION, CONNECTION_UNSETTLED, CONNECTION_SESSIONS, CONNECTION_CONSUMERS,
)  # fmt: skip
