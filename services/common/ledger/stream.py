"""The JetStream stream that keeps batches until they are filed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, BadRequestError, NotFoundError

from services.common.bus.nats_link import Away
from services.common.config import Settings

NAME = "HOPLINE_LEDGER"
SUBJECTS = "hopline.ledger.>"
# Its limit is a share of its disk, however full that is, and is read when it starts.
NO_ROOM = (
    "NATS has no room for the record of messages: give it a larger disk, or a larger max_file_store, then start it "
    "again (where `hopline up` runs it: the whole stack)"
)
PROBE = "hopline.ledger._.probe"  # no instance's: shows whether the stream takes anything
MESSAGE_ID = "Nats-Msg-Id"
_DUPLICATES = 120.0  # seconds in which NATS itself drops what is sent twice; the filer does so at any time
_EXISTS = 10058  # JetStream: the name is in use with another configuration
_NO_ROOM = 10047  # JetStream promises less room (a server of ours, three quarters of its disk)
_SMALLER = 4
_LOOKS, _LOOK_SECONDS = 5, 1.0  # for a message to appear, before the stream counts as broken
_SMALLEST = 1 << 20

log = structlog.get_logger()


def subject_of(service: str, instance: str) -> str:
    """The subject of an instance's batches."""
    return f"hopline.ledger.{service}.{instance.replace('.', '_')}"


def config(settings: Settings, max_bytes: int) -> StreamConfig:
    """Batches that are filed leave the stream; of the others, the newest are kept."""
    return StreamConfig(
        name=NAME,
        subjects=[SUBJECTS],
        retention=RetentionPolicy.WORK_QUEUE,
        storage=StorageType.FILE,
        discard=DiscardPolicy.OLD,
        max_age=settings.ledger_days * 86400,
        max_bytes=max_bytes,
        duplicate_window=min(_DUPLICATES, settings.ledger_days * 86400),
    )


async def ensure(context: JetStreamContext, settings: Settings) -> None:
    """Makes the stream if there is none; raises what nats-py raises, and Away where NATS has no room."""
    try:
        await _as_large_as_can_be(settings, context.add_stream)
    except BadRequestError as failure:
        if failure.err_code != _EXISTS:
            raise


async def configure(context: JetStreamContext, settings: Settings) -> None:
    """Gives the stream the limits of the settings, or as much as NATS has room for; raises as `ensure`."""
    try:
        await _as_large_as_can_be(settings, context.update_stream)
    except NotFoundError:
        await ensure(context, settings)


async def takes(context: JetStreamContext) -> bool:
    """Whether the stream keeps what is sent; it never does again once its disk was full. Raises what nats-py raises.

    NATS may be slow to confirm, and yet answer other requests: so it waits for what was sent to appear in the stream.
    """
    before = (await context.stream_info(NAME)).state.last_seq
    if await _kept(context) or await _kept(context):
        return True
    for _ in range(_LOOKS):
        if (await context.stream_info(NAME)).state.last_seq > before:
            return True
        await asyncio.sleep(_LOOK_SECONDS)
    return (await context.stream_info(NAME)).state.last_seq > before


async def renew(context: JetStreamContext, settings: Settings) -> None:
    """Makes the stream anew, without what was in it; raises as `ensure`."""
    with contextlib.suppress(NotFoundError):
        await context.delete_stream(NAME)
    await ensure(context, settings)


async def _kept(context: JetStreamContext) -> bool:
    try:
        await context.publish(PROBE, b"")
    except (TimeoutError, APIError):
        return False
    return True


async def _as_large_as_can_be(settings: Settings, put: Callable[[StreamConfig], Awaitable[object]]) -> None:
    """Asks for a smaller stream each time that NATS has no room for one."""
    size = settings.ledger_stream_bytes
    while True:
        try:
            await put(config(settings, size))
        except APIError as failure:
            if failure.err_code != _NO_ROOM:
                raise
            if size == _SMALLEST:
                raise Away(NO_ROOM) from failure
            size = max(_SMALLEST, size // _SMALLER)
        else:
            if size < settings.ledger_stream_bytes:
                log.info("NATS keeps less of the record", bytes=size, wanted=settings.ledger_stream_bytes)
            return
