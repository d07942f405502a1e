"""A step of a message's way in words: where, and how or why."""

from __future__ import annotations

from services.common.trace import Step

# What was moved by hand is no dead letter, though it ends and begins as one does.
_BY_HAND = {("dead_lettered", "moved"): "moved", ("copied", "copied"): "copied"}

COLOURS = {
    "confirmed": "green", "settled": "green",
    "requeued": "yellow", "recovered": "yellow", "expired": "yellow", "dead_lettered": "yellow",
    "returned": "red", "refused": "red", "dropped": "red", "rolled_back": "red",
}  # fmt: skip


def called(stage: str, reason: str) -> str:
    """What a stage is called."""
    return "dead_lettered" if _is_again(stage, reason) else _BY_HAND.get((stage, reason), stage)


def is_by_hand(step: Step) -> bool:
    """Whether it says that the message was moved or copied: its target is a queue."""
    return (step.stage, step.reason) in _BY_HAND


def _is_again(stage: str, reason: str) -> bool:
    """Whether a dead letter goes on once more, since no queue took it, or not every one."""
    return stage == "copied" and (stage, reason) not in _BY_HAND


def place(step: Step) -> str:
    """The queue with its partition and term of office, or nothing."""
    parts = [step.queue]
    if step.partition is not None:
        parts.append(f"partition {step.partition}")
    if step.epoch is not None:
        parts.append(f"epoch {step.epoch}")
    return " ".join(part for part in parts if part)


def detail(step: Step) -> str:
    """Outcome, reason, target, attempt, consumer, and with how many other messages."""
    by_hand = is_by_hand(step)
    parts = [step.outcome, "" if by_hand else step.reason]
    if step.target:
        parts.append(f"to {'queue ' * by_hand}'{step.target}'")
    if step.attempt > 1 or _is_again(step.stage, step.reason):
        parts.append("again")
    if consumer := _consumer(step):
        parts.append(consumer)
    if step.count > 1:
        parts.append(f"with {step.count - 1} other{'s' * (step.count > 2)}")
    return ", ".join(part for part in parts if part)


def who(step: Step) -> str:
    """The client of a connection: what it calls itself, its user where that is another name, and its address."""
    about = [f"user {step.user}" if step.user and step.user != step.client else "", step.peer]
    more = ", ".join(part for part in about if part)
    return f"{step.client or step.connection} ({more})" if more else step.client or step.connection


def _consumer(step: Step) -> str:
    """The consumer's tag, and as far as they are on record its client and its connection."""
    if step.stage not in {"delivered", "sent"}:
        return f"consumer {step.consumer}" if step.consumer else ""
    tag = f"consumer {step.consumer}" if step.consumer else "basic.get" if step.stage == "sent" else ""
    by = f"by {who(step)}" if step.client else ""
    connection = f"on connection {step.connection}" if step.stage == "sent" and step.connection else ""
    return " ".join(part for part in (tag, by, connection) if part)
