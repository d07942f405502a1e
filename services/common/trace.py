"""A message's way as the ledger tells it: what a look-up answers, over REST and to the command line, as JSON.

Times are microseconds since the Unix epoch, by the clock of the instance that says so.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from services.common.question import CONCLUDED, Sought

_NAMED = 3  # gaps, of many that may be to blame

MOST_GAPS: Final = 50
"""The newest of those that may be to blame, where nothing is on record: what was noticed before is left out."""

# States of copies whose end is not on record.
WAITING, UNSETTLED, IN_FLIGHT, UNKNOWN, LOST, LOST_PERSISTED, LOST_TRANSIENT = CONCLUDED


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class Match(_Told):
    """A message that has the id that was asked for."""

    uid: int = Field(description="63 bits; names this message and no other")
    kind: str = Field(
        description="what the id is to it: uid, message_id, correlation_id or trace_id; `found` where there was none"
    )
    time_us: int | None = Field(
        description="when it was received, where the index of ids says so; the time that counted, where it was `found`"
    )


class Name(_Told):
    """What a message can be asked for by."""

    kind: str = Field(description="message_id, correlation_id or trace_id")
    id: str


class Step(_Told):
    """A stage that the message reached."""

    time_us: int
    wait_us: int = Field(description="since the step before, on the way to the same queue")
    stage: str = Field(description="received, routed, enqueued, …: services/common/ledger/README.md")
    service: str
    instance: str = Field(description="one run of one process")
    virtual_host: str
    exchange: str
    routing_key: str
    queue: str
    partition: int | None
    epoch: int | None = Field(description="of the partition's lease")
    protocol: str
    connection: str
    client: str
    user: str = Field("", description="of the connection; empty where it is not on record, or there is none")
    peer: str = Field("", description="address and port of the other end, the same way")
    consumer: str
    attempt: int = Field(description="delivered: 1 for the first time, 2 for any other; else 0")
    outcome: str
    reason: str
    target: str = Field(description="dead_lettered: the exchange; moved or copied: the queue")
    count: int = Field(description="messages that took the step together")
    bytes: int = Field(description="of all of them; 0 where it is not known")
    successors: list[int] = Field(description="dead_lettered: uids that this message went on as; copied: of its copies")


class Span(_Told):
    """A span of OpenTelemetry that has the message's trace id: of an application, or of the broker."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    service: str = Field(description="service.name")
    broker: bool = Field(description="it is Hopline's own: the steps say the same")
    kind: str = Field(description="internal, server, client, producer or consumer")
    start_us: int = Field(description="by the clock of the process that made it")
    end_us: int
    failed: bool
    attributes: dict[str, str | int | float | bool]


class Gap(_Told):
    """Rows that are missing in the ledger, at a time when the message was on its way."""

    time_us: int = Field(description="when it was noticed")
    service: str
    instance: str
    first_row: int
    last_row: int
    count: int = Field(description="rows; -1 where it cannot be known")
    reason: str
    since_us: int | None = Field(None, description="what happened before is on record; null where that is not known")


class Copy(_Told):
    """The message in one queue."""

    virtual_host: str
    queue: str
    state: str = Field(
        description="the last stage that it reached there; of one that never came there, how its message ended"
    )
    outcome: str
    reason: str
    ended: bool = Field(description="nothing more is to come")
    fate: str = Field(
        "",
        description="of one that has not ended: waiting, unsettled (a consumer has it), in_flight (too young to "
        "judge), lost (no queue ever had it), lost (persisted), lost (transient), unknown",
    )
    gap: Gap | None = Field(
        None, description="that is to blame that no more is known; of one that ended: that may hide what it went on as"
    )
    unread: str = Field("", description="the damaged file of the ledger that may tell more")
    silent: str = Field("", description="the process that had it last, where that does not answer at the moment")


class Payload(_Told):
    """A message as it was captured, where a rule wanted that."""

    time_us: int
    stage: str = Field(description="received, or sent")
    instance: str
    queue: str = Field(description="sent: from there")
    consumer: str
    connection: str
    client: str
    rule: str
    properties: dict[str, Any] = Field(description="by their names in AMQP 0-9-1; headers as JSON")
    size: int = Field(description="bytes of the body")
    kept: int = Field(description="bytes of its beginning that were kept")
    body: str = Field(description="these, in base64")
    text: str | None = Field(description="the same as text; null where they are none")


class Message(_Told):
    """One uid: what was published, or what went on from a queue: dead-lettered, moved or copied."""

    uid: int
    predecessor: int | None = Field(
        description="the uid that it was before it was dead-lettered or moved, or that it was copied of"
    )
    steps: list[Step] = Field(description="by time")
    copies: list[Copy]
    ended: bool = Field(description="nothing more is to come of it, except as other uids")
    payloads: list[Payload] = Field([], description="what was captured of it, where that is asked for")
    names: list[Name] = Field([], description="of one that was received: its ids")


class Journey(_Told):
    """A message's whole way, before and after every dead-lettering, move and copy."""

    match: Match
    messages: list[Message] = Field(description="by their first step")
    gaps: list[Gap]
    cut_short: bool = Field(description="it went on for longer than a look-up follows")
    spans: list[Span] = Field([], description="by their start: those that are in files of spans")
    jaeger: list[str] = Field([], description="where Jaeger shows its traces, while Jaeger is there")


class Trace(_Told):
    """What is known of an id."""

    id: str = Field(description="as it was asked for; empty where messages were found by what they have in common")
    journeys: list[Journey] = Field(description="the newest first")
    more: bool = Field(description="more messages have the id, or have that in common, than are told here")
    cut_short: bool = Field(False, description="older hours were not searched: it takes too long")
    spans_cut_short: bool = Field(False, description="not all files of spans were searched: it takes too long")
    damaged: list[str] = Field([], description="files of the record that cannot be read, and were passed over")
    restored: str = Field("", description="what the broker does not know of it since a restore, where that is so")
    trouble: str = Field("", description="why nothing is put on file at the moment, where that is so")
    gaps: list[Gap] = Field(
        default_factory=list,
        description="where nothing is found: the last day's gaps of gateways, which may have received it, newest first",
    )
    gone: list[str] = Field([], description="where nothing is found: gateways that died, and may have received it")


def is_let_go(last: Step | Copy) -> bool:
    """Whether the owner lost the partition, and what was not on disk: that is no end, as the copy may come again.

    Of a copy whose fate is unknown, not even that is the last that is known.
    """
    stage = last.stage if isinstance(last, Step) else last.state
    return (stage, last.reason) == ("dropped", "no_owner") and not (isinstance(last, Copy) and last.fate == UNKNOWN)


def trace_ids(journey: Journey) -> list[str]:
    """The trace ids that its messages were published with, each once."""
    names = (name for message in journey.messages for name in message.names)
    return list(dict.fromkeys(name.id for name in names if name.kind == "trace_id"))


def nothing(asked: str | Sought, found: Trace) -> str:
    """The words for an operator when nothing was found."""
    what = (
        f"of '{asked}'"
        if isinstance(asked, str)
        else f"of a message with {asked} in virtual host '{asked.virtual_host}'"
    )
    searched = (
        "; older hours were not searched, it takes too long: --since and --until bound it" if found.cut_short else ""
    )
    damaged = f"; {len(found.damaged)} damaged files were passed over: {found.damaged[0]} …" if found.damaged else ""
    why = f"; the record is not filed at the moment: {found.trouble}" if found.trouble else ""
    if found.gaps:
        named, others = found.gaps[:_NAMED], len(found.gaps[_NAMED:])
        why += f"; it may be what is missing of {' or '.join(map(blame, named))}"
        more = " or more" if len(found.gaps) >= MOST_GAPS else ""
        why += f" or of {others}{more} that were noticed before" if others else ""
    if found.gone:
        why += f"; it may be what is missing of {' and '.join(found.gone)}, which died just now"
    return f"nothing is on record {what}{searched}{damaged}{why}"


def blame(gap: Gap) -> str:
    """The gap, in words."""
    since = f" since {_second(gap.since_us)}" if gap.since_us is not None else ""
    return f"{gap.instance} ({gap.reason}{since}, noticed {_second(gap.time_us)})"


def _second(time_us: int) -> str:
    return f"{datetime.fromtimestamp(time_us / 1e6, UTC):%Y-%m-%d %H:%M:%S}Z"
