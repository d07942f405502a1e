"""The gRPC face: one stream for each link, read here, written from here whenever its peer takes it."""

from __future__ import annotations

import grpc
import structlog

from services.common.message import in_front
from services.common.streams.grpc_fields import trailers
from services.common.streams.soon import Soon
from services.common.streams.stream import Stream
from services.queue.host import Host
from services.queue.links.link import PeerLink
from services.queue.links.portions import Portions
from services.rpc.queue_pb2 import Hello, LinkFrame

log = structlog.get_logger()

_DO = "nothing where that one has just ended; else no two may say the same address (HOPLINE_QUEUE_ADVERTISE)"


class PeerStream:
    """A stream of hopline.queue.Queue/Attach: frames in, and their answers out in the same turn.

    What other links, the journal or the clock cause goes out at the turn's end. While the peer reads nothing, it
    collects in the outbox.
    """

    def __init__(self, host: Host, member: str, stream: Stream) -> None:
        """`member` is this process; a peer that means another one is refused before anything it says is heard."""
        self._member = member
        self._few = host.few
        self._write_soon = Soon(self._write)
        self._link = PeerLink(host, self._write_soon, stream.fail)
        self._portions = Portions(host, self._link, self._write_soon.now, stream.fail)
        self._stream = stream

    def received(self, message: bytes) -> None:
        """Carries out a frame. Raises DecodeError when the bytes are none."""
        publishes, rest = in_front.batches(in_front.PUBLISHES, message)
        frame = LinkFrame.FromString(message[rest:] if rest else message)
        if frame.HasField("hello") and not self._welcomed(frame.hello):
            return
        self._portions.receive(frame, [*publishes, *frame.publishes])
        self._write_soon.now()

    def writable(self) -> None:
        """The peer reads again."""
        self._write()

    def ended(self, reason: str) -> None:
        """The stream is over, and with it the link."""
        self._link.close()
        log.info("link ended", peer=self._link.name, reason=reason)

    def _welcomed(self, hello: Hello) -> bool:
        if hello.member not in ("", self._member):
            about = {"peer": hello.name, "member": hello.member, "do": _DO}  # all come again until its leases end
            self._few.say(log.info, "link refused, it is meant for another process", apart_by=hello.member, **about)
            reason = f"this is {self._member}, not {hello.member}"
        elif not self._link.hello(hello):
            log.info("link refused, its peer has a later one", peer=hello.name)
            reason = "the peer has had another stream since"
        else:
            return True
        self._stream.end(trailers(grpc.StatusCode.UNAVAILABLE, reason))
        return False

    def _write(self) -> None:
        stream, outbox = self._stream, self._link.outbox
        while not stream.full and (outgoing := outbox.take()) is not None:
            stream.write(outgoing.wire())
