"""Rows of the ledger as a journey that can be told. Pure."""

from __future__ import annotations

from typing import Any

from services.common.trace import LOST_TRANSIENT, UNKNOWN, Copy, Gap, Journey, Match, Message, Step, is_let_go
from services.common.uid import origin_of
from services.mgmt.lookup.blame import EVER, WAIT_US, Window, after_end, covers
from services.mgmt.lookup.fate import Fate, Record, before_recovered, fate_of
from services.mgmt.lookup.stage_row import StageRow
from services.mgmt.lookup.unnamed import ENDS_COPY, is_unnamed, with_queues
from services.mgmt.lookup.way import Way

# As they follow each other where the clock does not tell them apart.
_ORDER = {
    stage: number
    for number, stage in enumerate(
        (
            "received", "routed", "returned", "enqueued", "persisted", "confirmed", "refused", "recovered", "delivered",
            "sent", "requeued", "expired", "settled", "dead_lettered", "dropped", "rolled_back", "copied",
        )
    )
}  # fmt: skip
# Recorded beside the queue's decisions, which go on meanwhile: a message may be settled before it is on disk. One that
# was copied is as it was.
_ASIDE = {"persisted", "sent", "copied"}
_QUEUE_DELETED = "queue_deleted"
_ENDS_MESSAGE = {"returned", "refused", "rolled_back", "dropped"}

_OF_ROW = [name for name in Step.model_fields if name not in {"wait_us", "user", "peer"}]
_GAP_NOTICED_US = 3_600_000_000  # within an hour of what is missing


def assemble(match: Match, way: Way, record: Record) -> Journey:
    """`record` has all gaps since the way began; those that may concern it are told."""
    messages = [_message(uid, rows, way, record) for uid, rows in way.rows.items()]
    # A message of which only its predecessor's row is known comes last.
    messages.sort(key=lambda message: (not message.steps, [step.time_us for step in message.steps[:1]], message.uid))
    first_owners = _first_owners(messages, record)
    return Journey(
        match=match,
        messages=messages,
        gaps=[gap for gap in record.gaps if gap in first_owners or _concerns(gap, match, messages)],
        cut_short=way.cut_short,
    )


def begin_of(way: Way, match: Match) -> int:
    """When the first known row was written."""
    return min((row.time_us for rows in way.rows.values() for row in rows), default=match.time_us or 0)


def _message(uid: int, rows: list[StageRow], way: Way, record: Record) -> Message:
    ordered = sorted(rows, key=lambda row: (row.time_us, _ORDER.get(row.stage, 0), row.row))
    told = [_step(row, _wait_us(ordered[:number], row), uid) for number, row in enumerate(ordered)]
    steps, in_doubt = with_queues(told)
    found = _copies(steps, record, _sent_on_us(uid, way))
    copies = [_doubted(copy) if _key(copy) in in_doubt else copy for copy in found]
    own = any(_is_refusal(step) or (is_unnamed(step) and not copies) for step in steps)
    ended = own or (bool(copies) and all(copy.ended for copy in copies))
    return Message(uid=uid, predecessor=way.predecessors.get(uid), steps=steps, copies=copies, ended=ended)


def _sent_on_us(uid: int, way: Way) -> int | None:
    """When what it was before went on as this message; None where it was received."""
    predecessor = way.predecessors.get(uid)
    if predecessor is None:
        return None
    rows = way.rows.get(predecessor, [])
    return min((row.time_us for row in rows if uid in row.successors_of(predecessor)), default=None)


def _doubted(copy: Copy) -> Copy:
    """Another in the same partition may have ended, or it."""
    return copy if copy.ended else copy.model_copy(update={"fate": UNKNOWN, "gap": None})


def _key(copy: Copy) -> tuple[str, str]:
    return copy.virtual_host, copy.queue


def _wait_us(earlier: list[StageRow], row: StageRow) -> int:
    """A copy's steps follow each other; what concerns the whole message follows anything."""
    here = (row.virtual_host, row.queue)
    same = [before for before in earlier if (before.virtual_host, before.queue) == here] if row.queue else earlier
    before = same or [before for before in earlier if not before.queue]
    return row.time_us - before[-1].time_us if before else 0


def _step(row: StageRow, wait_us: int, uid: int) -> Step:
    facts: dict[str, Any] = {name: getattr(row, name) for name in _OF_ROW}
    facts["successors"] = row.successors_of(uid)
    facts["partition"] = row.partition if row.partition >= 0 else None
    facts["epoch"] = row.epoch or None
    return Step(wait_us=wait_us, **facts)


def _copies(steps: list[Step], record: Record, sent_on_us: int | None) -> list[Copy]:
    in_queues = [step for step in steps if step.queue]
    decisive = [step for step in in_queues if step.stage not in _ASIDE and not _was_followed(step, in_queues)]
    last = {_place(step): step for some in (in_queues, decisive) for step in some}
    return [_copy(step, steps, record, sent_on_us) for step in last.values()]


def _was_followed(step: Step, in_queues: list[Step]) -> bool:
    """Whether an owner that lost the partition dropped it, and it had ended, or the next owner has it: that row comes
    late. So does that of one which stood still while the queue was deleted, where it ended for the next owner.
    """
    if not is_let_go(step) and (step.stage, step.reason) != ("dropped", _QUEUE_DELETED):
        return False
    others = [other for other in in_queues if _place(other) == _place(step)]
    ended = [other for other in others if other.stage in ENDS_COPY and not is_let_go(other)]
    if is_let_go(step):
        return bool(ended) or any(_is_of_next(other, step) for other in others)
    return any(_is_of_next(other, step) for other in ended)


def _is_of_next(other: Step, step: Step) -> bool:
    return (other.epoch or 0) > (step.epoch or 0)


def _place(step: Step) -> tuple[str, str]:
    return step.virtual_host, step.queue


def _copy(last: Step, steps: list[Step], record: Record, sent_on_us: int | None) -> Copy:
    its = [step for step in steps if _place(step) == _place(last)]
    refusals = [step for step in steps if _is_refusal(step)]
    if refusals and all(step.stage == "routed" for step in its):
        return _never_came(last, refusals[-1])
    let_go = is_let_go(last)
    ended = last.stage in ENDS_COPY and not let_go
    told = ended or bool(refusals)
    after = after_end(last, record.gaps) if ended else None
    told_fate = Fate(LOST_TRANSIENT) if let_go else Fate("", after)
    fate = told_fate if let_go or told else fate_of(its, steps, record, sent_on_us)
    return Copy(
        virtual_host=last.virtual_host,
        queue=last.queue,
        state=last.stage,
        outcome=last.outcome,
        reason=last.reason,
        ended=ended,
        fate=fate.name,
        gap=fate.gap,
        unread=fate.unread,
    )


def _never_came(routed: Step, refusal: Step) -> Copy:
    """It ended as its message did: nothing more is to come."""
    return Copy(
        virtual_host=routed.virtual_host,
        queue=routed.queue,
        state=refusal.stage,
        outcome="",
        reason=refusal.reason,
        ended=True,
    )


def _is_refusal(step: Step) -> bool:
    """Its publisher knows that it went nowhere."""
    return step.stage in _ENDS_MESSAGE and not step.queue and step.partition is None


def _first_owners(messages: list[Message], record: Record) -> list[Gap]:
    """Gaps of owners that are on no way, since all that they said is missing: of a delivery, perhaps."""
    found: list[Gap] = []
    for message in messages:
        for copy in message.copies:
            its = [step for step in message.steps if _place(step) == _key(copy)]
            begin = min(_times(message.steps))
            if gap := before_recovered(its, begin, record):
                found.append(gap)
    return found


def _concerns(gap: Gap, match: Match, messages: list[Message]) -> bool:
    """One that is to blame; one that can hold where a message went of which that is not known; else one of an instance
    of the way that was noticed on it or soon after, and had begun by then.
    """
    if any(copy.gap == gap for message in messages for copy in message.copies):
        return True
    steps = [step for message in messages for step in message.steps]
    if not steps:
        return _is_maker(gap, match.uid) and _is_of_then(gap, [match.time_us] if match.time_us is not None else [])
    nowhere = (message for message in messages if not message.ended and not message.copies)
    if any(_may_hold(gap, each) and _is_of_then(gap, _times(each.steps or steps)) for each in nowhere):
        return True
    last = max(_times(steps))
    going_on = 0 if all(message.ended for message in messages) else WAIT_US
    begun = gap.since_us is None or gap.since_us <= last + going_on
    return begun and gap.time_us <= last + _GAP_NOTICED_US and any(step.instance == gap.instance for step in steps)


def _times(steps: list[Step]) -> list[int]:
    return [step.time_us for step in steps]


def _may_hold(gap: Gap, message: Message) -> bool:
    """Whether who was missed would have said where it went: the gateway that received it; or if none is known to have,
    any queue process, for it may be a dead letter. Their origins are not on record.
    """
    was_received = any(step.stage == "received" for step in message.steps)
    return _is_maker(gap, message.uid) or (not was_received and gap.service == "queue")


def _is_maker(gap: Gap, uid: int) -> bool:
    """Whether it is the gateway's that gave the uid, which has its origin in its name."""
    return gap.service == "gateway" and gap.instance.rpartition("-")[2] == str(origin_of(uid))


def _is_of_then(gap: Gap, times: list[int]) -> bool:
    """Whether it can hold what happened to a message that was about at these times; at any, where none is known."""
    return covers(gap, Window(min(times), max(times) + WAIT_US) if times else EVER)
