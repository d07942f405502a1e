"""The rules of the audit, each an expression over a segment: what became of its messages, and what is wrong with it."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.journeys import COPIED, MOVED, NO_OWNER
from spark.schema import REASONS

LOST, LOST_PERSISTED, LOST_TRANSIENT = "lost", "lost (persisted)", "lost (transient)"
FAULTS = (LOST, LOST_PERSISTED)
UNKNOWN = "unknown"
SUSPECT = (*FAULTS, LOST_TRANSIENT, UNKNOWN)
_GOING_ON = ("waiting", "unsettled")
_MISSING = (*FAULTS, LOST_TRANSIENT, "not_enqueued")

# By which clocks may differ: a publisher is told that a message is safe by another process than wrote it down.
_SLACK = 1_000_000  # µs
# Within which what waits for an owner comes to the next one, or its publisher is taken to have given it up.
_WAIT = 60_000_000  # µs
# By which a dead letter is on record after the end that it comes of, as a rule.
_AFTER = 1_000_000  # µs
_EVER, _NEVER = -(1 << 62), 1 << 62
_SEQUENCE_BITS = 39  # of a uid, below the origin: one run of one process, which has its number in its name


def origin() -> Column:
    """What was promised of the messages: those that are `promised` must not be lost."""
    return (
        F.when(_some("confirmed"), "confirmed")
        .when(_some("successor"), _origin_of_successor())
        .when(_some("rolled_back"), "rolled_back")
        .when(_some("refused"), "refused")
        .when(_some("received"), "unconfirmed")
        .otherwise("earlier")  # received before the time that is looked at, or in a gap
    )


def fate() -> Column:
    """What became of the messages."""
    return F.when(F.col("copy"), _fate_of_copy()).otherwise(_fate_of_message())


def reason() -> Column:
    """Why; "" where the fate says it all."""
    code = reduce(
        lambda so_far, case: F.when((F.col("fate") == case[0]) & case[1], F.col(case[2])).otherwise(so_far),
        reversed(_reasons_of_fates()),
        F.lit(0),
    )
    never = F.when(F.col("copy"), "never_enqueued").otherwise("never_routed")
    missing = (
        F.when(_let_go(), NO_OWNER)
        .when(_placed() & _gone(), "not_recovered")
        .when(_placed(), "not_heard_of")
        .otherwise(never)
    )
    words = F.array(*(F.lit(word) for word in REASONS))
    return F.when(F.col("fate").isin(*SUSPECT), missing).otherwise(F.get(words, code.cast("int")))


def gap() -> Column:
    """The gap of the record that is to blame that nothing more is known; "" where none is."""
    of_copy = F.when(_placed(), F.coalesce("hiding_gap.words", "found_gap.words")).otherwise(F.col("hiding_owner"))
    words = F.when(F.col("copy"), of_copy).otherwise(F.col("hiding_maker"))
    blamed = (F.col("fate") == UNKNOWN) | ((F.col("fate") == LOST_TRANSIENT) & ~_let_go())
    return F.coalesce(F.when(blamed, words), _right_after_end(), F.lit(""))


def last_owner() -> Column:
    """The epoch in which copies ended last thing that is known, where they may have gone on as dead letters."""
    gone_on = reduce(or_, (_some(name) for name in ("dead_lettered", MOVED, "accepted", "dropped")))
    is_last = F.col("copy") & (_some("expired") | _some("rejected")) & ~gone_on
    return F.when(is_last, F.col("last_ended_epoch"))


def _right_after_end() -> Column:
    """The first gap of that owner that may hide that they did."""
    found = F.filter(
        "own_gaps",
        lambda gap: (gap.time >= F.col("last_time")) & (gap.since <= F.col("last_time") + _AFTER + _SLACK),
    )
    return F.get(found, F.lit(0)).words


def unread_file() -> Column:
    """The file that cannot be read and may say more of messages with that `fate`; null where none may.

    What goes on may have ended since the last that is known of it. What is missing may be told of at any time since it
    began; where it is not on record either when that was, in any file.
    """
    began = F.coalesce("began", F.lit(_EVER))
    since = F.when(F.col("fate").isin(*_GOING_ON), F.col("last_time")).when(F.col("fate").isin(*_MISSING), began)
    return _first("unread_files", since).words


def hiding_gap() -> Column:
    """The first gap of the owner that had it last that may hide what became of a copy. Its `since` is that of all."""
    return F.when(_placed(), _first("gaps", F.col("last_time")))


def found_gap() -> Column:
    """The first gap that may hide that a later owner has it."""
    return F.when(_placed(), _first("found_gaps", F.col("last_time")))


def _first(gaps: str, since: Column) -> Column:
    """The first of some gaps, or files, that are later than that."""
    return F.get(F.filter(gaps, lambda gap: gap.time >= since), F.lit(0))


def maker() -> Column:
    """Who gave messages that are in no queue their uids."""
    return F.when(~F.col("copy"), F.shiftright("first", _SEQUENCE_BITS))


def anybodys() -> Column:
    """True where any queue process may have had the messages, else null: no owner of their partition is on record, or
    one of them sent them on, and it is not known where.
    """
    no_owner = F.col("copy") & ~_placed() & F.col("current_epoch").isNull()
    return F.when(no_owner | (~F.col("copy") & _some("successor")), F.lit(True))


def hiding_owner() -> Column:
    """The first gap that can hold what an owner of the partition would have said of a copy that none told of; where no
    owner is on record, what any queue process would have.
    """
    return F.when(F.col("copy") & ~_placed(), F.coalesce(_covering("gaps"), _covering("queue_gaps")))


def hiding_maker() -> Column:
    """The first gap that can hold where a message went: of the gateway that received it, or for a dead letter of any
    queue process. Which of these gave it its uid is not on record.
    """
    return F.when(~F.col("copy"), F.coalesce(_covering("maker_gaps"), _covering("queue_gaps")))


def _covering(gaps: str) -> Column:
    """The first of some gaps that is of when the messages were there, until an owner must have had them. One that was
    not confirmed may have waited for an owner; a dead letter does until there is one. Of some it is only known that a
    consumer has had them, at any time.
    """
    begin = F.coalesce(F.least("began", "message_time", "last_time"), F.lit(_EVER))
    last = F.greatest("last_time", "message_time")
    taken_over = F.get(F.filter("takeovers", lambda time: time > last), F.lit(0))
    end = (
        F.when(_some("confirmed"), F.col("message_time"))
        .when(_some("successor"), F.coalesce(taken_over + _WAIT, F.lit(_NEVER)))
        .otherwise(F.coalesce(last + _WAIT, F.lit(_NEVER)))
    )
    found = F.filter(gaps, lambda gap: (gap.time >= begin) & (gap.since <= end + _SLACK))
    return F.get(found, F.lit(0)).words


def _reasons_of_fates() -> tuple[tuple[str, Column, str], ...]:
    """Fates, to which rows they apply (all, or copies only), and the columns with their reasons."""
    anyone, copies = F.lit(True), F.col("copy")
    return (
        ("dead_lettered", anyone, "dead_reason"),
        ("expired", anyone, "expired_reason"),
        ("dropped", copies, "dropped_reason"),
        ("dropped", ~copies, "dropped_unplaced_reason"),
        ("returned", anyone, "returned_unplaced_reason"),
        ("refused", anyone, "refused_unplaced_reason"),
    )


def duplicate() -> Column:
    """How the messages came twice; "" if they did not."""
    # An owner that dies before an end is on disk has recorded it, and the next one does again: that is no duplicate.
    owners = F.col("last_ended_epoch") - F.col("first_ended_epoch") + 1
    # The same of a dead letter that one owner had on its way when it handed the partition over, and the next one sends.
    # Nor is it one that a full queue was asked again, and was full again.
    dropped = F.when(_was_no_room(), 0).otherwise(F.col("dropped"))
    ends = (F.col("accepted"), F.col("expired"), F.col("rejected"), dropped)
    succeeded = F.col("dead_lettered") + F.col("moved")
    twice = reduce(or_, (count > owners for count in ends))
    accepted_and_more = _some("accepted") & (F.col("rejected") + F.col("expired") + dropped > 0)
    went_on = (succeeded > owners) | (_some("accepted") & (succeeded > 0))
    # What an owner lost without having confirmed it is sent to the next one, and enqueued again: under another epoch.
    epochs = F.col("last_enqueued_epoch") - F.col("first_enqueued_epoch") + 1
    found_before = F.coalesce(F.col("enqueued_moment") > F.col("recovered_moment"), F.lit(False))
    again = (F.col("enqueued") > 1) & ((F.col("enqueued") > epochs) | found_before)
    return (
        F.when(went_on | twice | (accepted_and_more & (owners == 1)), "settled_twice")
        .when(_delivered_after_end(), "delivered_after_settled")
        .when(again, "enqueued_twice")
        .otherwise("")
    )


def _delivered_after_end() -> Column:
    """Whether copies were delivered after an end, those of a former owner being earlier, whatever its clock said.

    But where a queue was deleted, by time as well: a former owner that stood still drops what it had once it goes on,
    though the next one has delivered it meanwhile.
    """
    reasons = F.col("least_dropped_reason"), F.col("dropped_reason")
    of_deleted = reduce(and_, (each == REASONS.index("queue_deleted") for each in reasons))
    dropped = F.col("delivered_moment") > F.col("dropped_moment")
    before = ~of_deleted | (F.col("delivered_time") > F.col("dropped_time"))
    return F.coalesce(F.col("delivered_moment") > F.col("ended_moment"), F.lit(False)) | (dropped & before)


def _some(name: str) -> Column:
    return F.col(name) > 0


def _placed() -> Column:
    return _some("enqueued") | _some("recovered")


def _fate_of_copy() -> Column:
    ended = (
        F.when(_some("dead_lettered"), "dead_lettered")
        .when(_some("moved"), MOVED)
        .when(_some("accepted"), "settled")
        .when(_some("expired"), "expired")
        .when(_some("dropped") & ~_was_no_room(), "dropped")
        .when(_some("rejected"), "rejected")
        .when(_some("dropped"), "refused")
    )
    on_disk, perhaps_taken = _some("persisted"), _perhaps_taken()
    # No owner has recorded the partition since its owner was killed: what was in memory may be handed over yet.
    left_alone = _placed() & F.coalesce(F.col("owner_ended") >= F.col("last_time"), F.lit(False))
    held = F.greatest("delivered_moment", "held_moment") > F.coalesce("returned_moment", F.lit(0))
    return (
        ended.when(_some("in_doubt"), UNKNOWN)
        .when(_let_go(), LOST_TRANSIENT)
        .when(_placed() & _gone(), _fate_of_gone(on_disk, perhaps_taken))
        .when(left_alone, F.when(on_disk & ~perhaps_taken, "waiting").otherwise(UNKNOWN))
        .when(_placed() & _hidden() & perhaps_taken, UNKNOWN)
        .when(_placed() & held, "unsettled")
        .when(_placed(), "waiting")
        .when(~promised() & F.col("origin").isin("refused", "rolled_back"), F.col("origin"))
        .when(F.col("origin").isin("unconfirmed", "earlier") & F.col("hiding_owner").isNotNull(), UNKNOWN)
        .when(~promised(), "not_enqueued")
        .otherwise(_missing(F.col("hiding_owner").isNotNull(), F.col("last_time")))
    )


def _let_go() -> Column:
    """Whether the last owner that had it said that it lost it: what it did not have on disk, with the partition."""
    return F.coalesce(F.col("let_go_epoch") >= F.col("epoch"), F.lit(False))


def _was_no_room() -> Column:
    """Whether the queue was full, which it says too, for publishers that did not ask: this one was told."""
    full = F.col("dropped_reason") == REASONS.index("maxlen")
    return (F.col("origin") == "refused") & ~_placed() & full


def _gone() -> Column:
    """Whether the last owner does not have it: a new owner records everything in the partition."""
    return F.coalesce(F.col("epoch") < F.col("current_epoch"), F.lit(False))


def _hidden() -> Column:
    """Whether the row by which their owner says what became of copies may be missing."""
    return F.col("hiding_gap").isNotNull()


def _perhaps_taken() -> Column:
    """Whether a consumer had it once, for all that is known, or it may have ended without one."""
    return (
        _some("sent")
        | F.col("delivered_moment").isNotNull()
        | F.coalesce(_sent_unseen(), F.lit(False))
        | F.coalesce("ends_alone", F.lit(False))
    )


def _sent_unseen() -> Column:
    """Whether a gateway may have sent it since, without a word on record."""
    since = F.greatest("hiding_gap.since", "last_time")
    return F.col("sent_until") >= since - _SLACK


def _fate_of_gone(on_disk: Column, perhaps_taken: Column) -> Column:
    # A word that it is on disk goes before the confirm: if the owner told what came later, it told that too.
    safe_by = F.greatest("message_time", "last_time") + _SLACK
    in_memory = ~on_disk & (safe_by <= F.col("hiding_gap.since"))
    return (
        F.when(_is_recent(F.greatest("last_time", "term_began")), "in_flight")
        .when(F.col("found_gap").isNotNull() | F.col("untold"), UNKNOWN)
        .when(~_hidden() & on_disk, LOST_PERSISTED)
        .when(~_hidden(), LOST_TRANSIENT)
        .when(in_memory & ~perhaps_taken, LOST_TRANSIENT)
        .otherwise(UNKNOWN)
    )


def _fate_of_message() -> Column:
    return (
        F.when(_some("returned"), "returned")
        .when(_some("dropped_unrouted"), "dropped")
        .when(~promised() & F.col("origin").isin("refused", "rolled_back"), F.col("origin"))
        .when(~promised(), "not_enqueued")
        .otherwise(_missing(F.col("hiding_maker").isNotNull(), F.col("message_time")))
    )


def promised() -> Column:
    """Whether messages of that `origin` must not be lost."""
    return F.col("origin").isin("confirmed", "dead_letter", MOVED, COPIED)


def _origin_of_successor() -> Column:
    why = F.col("successor_reason")
    by_hand = F.when(why == REASONS.index(MOVED), MOVED).when(why == REASONS.index(COPIED), COPIED)
    return by_hand.otherwise("dead_letter")


def _missing(unsure: Column, since: Column) -> Column:
    return F.when(_is_recent(since), "in_flight").when(unsure, UNKNOWN).otherwise(LOST)


def _is_recent(since: Column) -> Column:
    return since > F.col("as_of") - F.col("grace")
