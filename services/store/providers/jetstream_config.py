"""How the stream of a store is configured: operators may make or edit it, and it must keep what it confirms."""

from __future__ import annotations

from nats.js.api import DiscardPolicy, PersistMode, RetentionPolicy, StorageType, StreamConfig

_AS_WANTED = ("subjects", "storage", "discard", "retention", "allow_direct")
_WITHOUT_LIMIT = ("max_age", "max_msgs", "max_msgs_per_subject")
_WITHOUT = ("no_ack", "sealed", "deny_purge", "mirror", "sources", "subject_transform", "allow_msg_counter")


def wanted(stream: str, subject: str) -> StreamConfig:
    """The configuration of the stream `stream`, whose messages have subjects that match `subject`."""
    return StreamConfig(
        name=stream,
        subjects=[subject],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        discard=DiscardPolicy.NEW,  # a full stream refuses messages: it must not drop any
        allow_direct=True,
    )


def fault(found: StreamConfig, wanted: StreamConfig, largest: int) -> str:
    """Why a store cannot use the stream, with messages of up to `largest` bytes; "" where it can."""
    for name in _AS_WANTED:
        if getattr(found, name) != getattr(wanted, name):
            return f"its {name} are others"
    for name in _WITHOUT_LIMIT:
        if (getattr(found, name) or 0) > 0:
            return f"it lets go of messages, by {name}"
    if set_ := [name for name in _WITHOUT if getattr(found, name)]:
        return f"it has {set_[0]}"
    if found.persist_mode not in (None, PersistMode.DEFAULT):
        return "its persist_mode confirms what is not on disk"
    if 0 < (found.max_msg_size or 0) < largest:
        return f"its max_msg_size is {found.max_msg_size}, and must be {largest} at least"
    return ""
