"""The quick way in for what nearly always is read while little is sent: one frame with one message, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from services.common.http2.events import Message

if TYPE_CHECKING:
    from services.common.http2.frames import FrameReader
    from services.common.http2.receiving import ReceiveWindow
    from services.common.http2.stream import Stream


def sole_message(
    reader: FrameReader, count: int, streams: Mapping[int, Stream], receiving: ReceiveWindow
) -> Message | None:
    """The message, where `count` octets just read are that, and no window has to be opened again behind it.

    None where they are anything else, or a fault: then nothing of them is taken, and they have to be fed.
    """
    data = reader.sole_data(count)
    if data is None:
        return None
    number, payload = data
    stream, size = streams.get(number), len(payload)
    if stream is None or stream.peer_ended:
        return None
    if not (receiving.has_plenty(size) and stream.receiving.has_plenty(size)):
        return None
    message = stream.reader.sole(payload)
    if message is None:
        return None
    receiving.take(size)
    stream.receiving.take(size)
    return Message(number, message)
