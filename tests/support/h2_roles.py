"""The same role played twice, by our connection and by one of the `h2` library: what each makes of the same bytes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from h2 import events as h2_events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from h2.settings import Settings

from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ConnectionFault, ErrorCode
from services.common.http2.events import Ended, Headers, Message
from services.common.http2.settings import CONNECTION_WINDOW, OURS
from tests.support.http2_transcript import (
    GOAWAY,
    LARGEST_MESSAGE,
    PREFACE,
    REQUEST,
    RESPONSE,
    RST_STREAM,
    TRAILERS,
    messages,
    read,
    receive,
)


class Outcome(NamedTuple):
    """What becomes of a frame: how much ends with it, and the code that the peer is told."""

    ends: str  # "nothing", "stream" or "connection"
    code: int = 0

    def __str__(self) -> str:
        return f"{self.ends} {ErrorCode(self.code).name}" if self.ends != "nothing" else "goes on"


GOES_ON = Outcome("nothing")


class Role:
    """Answers requests and ends with their ends, if it serves; keeps what it hears, whole messages alone."""

    def __init__(self, *, is_client: bool) -> None:
        self.is_client = is_client
        self.fields: defaultdict[int, list[tuple[list[tuple[str, str]], bool]]] = defaultdict(list)
        self.ended: list[int] = []
        self.said = b""

    def hear(self, data: bytes) -> Outcome:
        """What comes of it. Any other exception than for a broken protocol is a fault."""
        self.said = b""
        broken = self._hear(data)
        self.said = self._take()
        frames = read(self.said.removeprefix(PREFACE))
        if broken:
            assert frames[-1].kind == GOAWAY
            return Outcome("connection", int.from_bytes(frames[-1].payload[4:8], "big"))
        resets = [frame for frame in frames if frame.kind == RST_STREAM and any(frame.payload)]  # without NO_ERROR
        return Outcome("stream", int.from_bytes(resets[0].payload, "big")) if resets else GOES_ON

    def _hear(self, data: bytes) -> bool:
        """Whether the connection is over."""
        raise NotImplementedError

    def _take(self) -> bytes:
        raise NotImplementedError

    def silent(self) -> None:
        """Its answers from now on are not looked at."""
        self._take()

    def messages(self, number: int) -> list[bytes]:
        """That have come on a stream."""
        raise NotImplementedError


class Ours(Role):
    """Played by our connection."""

    def __init__(self, *, is_client: bool) -> None:
        super().__init__(is_client=is_client)
        self.connection = Http2Connection(is_client=is_client, largest_message=LARGEST_MESSAGE)
        self._messages: defaultdict[int, list[bytes]] = defaultdict(list)

    def request(self) -> None:
        self.connection.request(REQUEST)

    def end(self, number: int) -> None:
        self.connection.end(number, TRAILERS)

    def reset(self, number: int) -> None:
        self.connection.reset(number, ErrorCode.CANCEL)

    def _hear(self, data: bytes) -> bool:
        try:
            for event in receive(self.connection, data):
                self._take_in(event)
        except ConnectionFault:
            return True
        return False

    def _take_in(self, event: Any) -> None:
        match event:
            case Headers(number, fields, ended):
                self.fields[number].append((fields, ended))
                if not self.is_client and len(self.fields[number]) == 1:
                    self.connection.respond(number, RESPONSE)
                if ended:
                    self._peer_ended(number)
            case Message(number, data):
                self._messages[number].append(data)
            case Ended(number):
                self._peer_ended(number)

    def _peer_ended(self, number: int) -> None:
        self.ended.append(number)
        if not self.is_client:
            self.end(number)

    def _take(self) -> bytes:
        return b"".join(self.connection.data_to_send())

    def messages(self, number: int) -> list[bytes]:
        return self._messages[number]


class Theirs(Role):
    """Played by h2, with the settings and windows that ours has. Header fields are its user's to judge, as in ours."""

    def __init__(self, *, is_client: bool) -> None:
        super().__init__(is_client=is_client)
        config = H2Configuration(
            client_side=is_client,
            header_encoding="utf-8",
            validate_inbound_headers=False,
            normalize_inbound_headers=False,
        )
        self.h2 = H2Connection(config)
        self.h2.local_settings = Settings(client=is_client, initial_values={int(key): OURS[key] for key in OURS})
        self.h2.max_inbound_frame_size = self.h2.local_settings.max_frame_size
        self.h2.decoder.max_header_list_size = self.h2.local_settings.max_header_list_size
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(CONNECTION_WINDOW - 65_535)
        self._data: defaultdict[int, bytes] = defaultdict(bytes)
        self._closed: set[int] = set()

    def request(self) -> None:
        self.h2.send_headers(self.h2.get_next_available_stream_id(), REQUEST)

    def end(self, number: int) -> None:
        if number in self._closed or number not in self.h2.streams:
            return
        self._closed.add(number)
        if self.is_client:
            self.h2.end_stream(number)
        else:
            self.h2.send_headers(number, TRAILERS, end_stream=True)
            if number not in self.ended:
                self.h2.reset_stream(number, ErrorCode.NO_ERROR)

    def reset(self, number: int) -> None:
        if number in self.h2.streams and not self.h2.streams[number].closed:
            self._closed.add(number)
            self.h2.reset_stream(number, ErrorCode.CANCEL)

    def _hear(self, data: bytes) -> bool:
        try:
            for event in self.h2.receive_data(data):
                self._take_in(event)
        except ProtocolError:
            return True
        return False

    def _take_in(self, event: Any) -> None:
        match event:
            case h2_events.RequestReceived() | h2_events.ResponseReceived() | h2_events.TrailersReceived():
                self.fields[event.stream_id].append((event.headers, event.stream_ended is not None))
                if isinstance(event, h2_events.RequestReceived):
                    self.h2.send_headers(event.stream_id, RESPONSE)
            case h2_events.DataReceived():
                self._data[event.stream_id] += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case h2_events.StreamEnded():
                self.ended.append(event.stream_id)
                if not self.is_client:
                    self.end(event.stream_id)
            case h2_events.StreamReset():
                self._closed.add(event.stream_id)

    def _take(self) -> bytes:
        return self.h2.data_to_send()

    def messages(self, number: int) -> list[bytes]:
        data, found = self._data[number], []
        while len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[1:5], "big"):
            size = int.from_bytes(data[1:5], "big")
            found.append(data[5 : 5 + size])
            data = data[5 + size :]
        assert messages(*found) + data == self._data[number]
        return found
