"""The JetStream stream that keeps batches until they are filed."""

from __future__ import annotations

from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import BadRequestError, NotFoundError

from services.common.config import Settings

NAME = "HOPLINE_LEDGER"
SUBJECTS = "hopline.ledger.>"
MESSAGE_ID = "Nats-Msg-Id"
_DUPLICATES = 120.0  # seconds in which NATS itself drops what is sent twice; the filer does so at any time
_EXISTS = 10058  # JetStream: the name is in use with another configuration


def subject_of(service: str, instance: str) -> str:
    """Where an instance tells."""
    return f"hopline.ledger.{service}.{instance.replace('.', '_')}"


def config(settings: Settings) -> StreamConfig:
    """What is filed leaves it; of what is not, the newest are kept."""
    return StreamConfig(
        name=NAME,
        subjects=[SUBJECTS],
        retention=RetentionPolicy.WORK_QUEUE,
        storage=StorageType.FILE,
        discard=DiscardPolicy.OLD,
        max_age=settings.ledger_days * 86400,
        max_bytes=settings.ledger_stream_bytes,
        duplicate_window=min(_DUPLICATES, settings.ledger_days * 86400),
    )


async def ensure(context: JetStreamContext, settings: Settings) -> None:
    """There is a stream afterwards; raises what nats-py raises."""
    try:
        await context.add_stream(config(settings))
    except BadRequestError as failure:
        if failure.err_code != _EXISTS:
            raise


async def configure(context: JetStreamContext, settings: Settings) -> None:
    """There is a stream, with the limits of the settings; raises what nats-py raises."""
    try:
        await context.update_stream(config(settings))
    except NotFoundError:
        await ensure(context, settings)
