"""The two ends of a conversation: ours, and one of the `h2` library, each with a user that keeps what it hears."""

from __future__ import annotations

from collections import defaultdict

from h2 import events as h2_events
from h2.config import H2Configuration
from h2.connection import H2Connection

from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ErrorCode
from services.common.http2.events import Ended, Event, GoneAway, Headers, Message, Pong, Reset
from tests.support.http2_transcript import LARGEST_MESSAGE, PREFACE, REQUEST, RESPONSE, TRAILERS, messages, receive


class End:
    """What is known of the conversation on one side."""

    def __init__(self, *, is_client: bool) -> None:
        self.is_client = is_client
        self.come: defaultdict[int, bytearray] = defaultdict(bytearray)  # messages, each with its prefix
        self.fields: defaultdict[int, list[list[tuple[str, str]]]] = defaultdict(list)
        self.known: list[int] = []  # streams, in the order in which they were opened
        self.ended: set[int] = set()  # by this side
        self.peer_ended: set[int] = set()
        self.over: set[int] = set()  # reset, by any side
        self.pongs = 0
        self.gone: tuple[int, int] | None = None  # the last stream and the code of the peer's GOAWAY

    def may_send(self, number: int) -> bool:
        """Whether the stream takes messages of this side."""
        return number not in self.ended | self.over


class OurEnd(End):
    """Ours."""

    def __init__(self, *, is_client: bool) -> None:
        super().__init__(is_client=is_client)
        self.connection = Http2Connection(is_client=is_client, largest_message=LARGEST_MESSAGE)

    def request(self) -> None:
        self.known.append(self.connection.request(REQUEST))

    def send(self, number: int, body: bytes) -> None:
        self.connection.send(number, body)

    def end(self, number: int) -> None:
        self.ended.add(number)
        if not self.is_client and number not in self.peer_ended:
            self.over.add(number)  # what the client still sends is ignored
        self.connection.end(number, TRAILERS)

    def reset(self, number: int) -> None:
        self.over.add(number)
        self.connection.reset(number, ErrorCode.CANCEL)

    def ping(self) -> None:
        self.connection.ping()

    def go_away(self) -> None:
        self.connection.go_away(ErrorCode.NO_ERROR, "that is all")

    def said(self) -> bytes:
        return b"".join(self.connection.data_to_send())

    def hear(self, data: bytes) -> None:
        for event in receive(self.connection, data):
            self._hear(event)

    def _hear(self, event: Event) -> None:
        match event:
            case Headers(number, fields, ended):
                self.fields[number].append(fields)
                if number not in self.known:
                    self.known.append(number)
                    self.connection.respond(number, RESPONSE)
                if ended:
                    self.peer_ended.add(number)
            case Message(number, data):
                self.come[number] += messages(data)
            case Ended(number):
                self.peer_ended.add(number)
            case Reset(number, _code, _text):
                self.over.add(number)
            case GoneAway(last, code, _text):
                self.gone = (last, code)
            case Pong():
                self.pongs += 1


class TheirEnd(End):
    """h2's. It sends as much as it may, in frames of changing sizes, and opens its windows when it is told to."""

    def __init__(self, *, is_client: bool, frames: list[tuple[int, int]]) -> None:
        """`frames` are the sizes and paddings of its DATA frames, in turns."""
        super().__init__(is_client=is_client)
        self.h2 = H2Connection(H2Configuration(client_side=is_client, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.unsent: dict[int, bytearray] = {}
        self.ending: set[int] = set()
        self._frames = frames
        self._turn = 0
        self._unsettled = True
        self._part = b""  # of a frame
        self._preface = 0 if is_client else len(PREFACE)  # octets that are still to come
        self._unanswered: list[int] = []

    def request(self) -> None:
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, REQUEST)
        self.known.append(number)

    def send(self, number: int, body: bytes) -> None:
        self.unsent.setdefault(number, bytearray()).extend(messages(body))
        self._pump(number)

    def end(self, number: int) -> None:
        self.ended.add(number)
        self.ending.add(number)
        self._pump(number)

    def reset(self, number: int) -> None:
        self.h2.reset_stream(number, ErrorCode.CANCEL)
        self._forget(number)

    def ping(self) -> None:
        self.h2.ping(b"12345678")

    def go_away(self) -> None:
        self.h2.close_connection(last_stream_id=self.known[0] if self.known else 0)

    def change(self, setting: int, value: int) -> None:
        """Tells a new setting, which holds when it has been acknowledged. One at a time: more would confuse h2."""
        if not self._unsettled:
            self._unsettled = True
            self.h2.update_settings({setting: value})

    def grant(self, number: int, size: int) -> None:
        """Opens a window; 0 stands for the connection's."""
        if not number:
            self.h2.increment_flow_control_window(size)
        elif number not in self.over | self.peer_ended:
            self.h2.increment_flow_control_window(size, number)

    def said(self) -> bytes:
        return self.h2.data_to_send()

    def hear(self, data: bytes) -> None:
        """Frame by frame: h2 looks up how large one may be once for all that it is given."""
        self.h2.receive_data(data[: self._preface])
        self._part += data[self._preface :]
        self._preface -= min(self._preface, len(data))
        while len(self._part) >= 9 and len(self._part) >= (end := 9 + int.from_bytes(self._part[:3], "big")):
            for event in self.h2.receive_data(self._part[:end]):
                self._hear(event)
            self._part = self._part[end:]
        if not self.gone:  # h2 says nothing more then
            self._answer()
            for number in self.known:
                self._pump(number)

    def _answer(self) -> None:
        """Requests, unless they were withdrawn in the same breath."""
        for number in self._unanswered:
            if number not in self.over:
                self.h2.send_headers(number, RESPONSE)
        self._unanswered.clear()

    def _hear(self, event: h2_events.Event) -> None:
        match event:
            case h2_events.RequestReceived():
                self.fields[event.stream_id].append(event.headers)
                self.known.append(event.stream_id)
                self._unanswered.append(event.stream_id)
            case h2_events.ResponseReceived() | h2_events.TrailersReceived():
                self.fields[event.stream_id].append(event.headers)
            case h2_events.DataReceived():
                self.come[event.stream_id] += event.data
            case h2_events.StreamEnded():
                self.peer_ended.add(event.stream_id)
            case h2_events.StreamReset():
                self._forget(event.stream_id)
            case h2_events.ConnectionTerminated():
                self.gone = (event.last_stream_id, event.error_code)
            case h2_events.SettingsAcknowledged():
                self._unsettled = False
            case h2_events.PingAckReceived():
                self.pongs += 1

    def _pump(self, number: int) -> None:
        waiting = self.unsent.get(number, bytearray())
        while waiting and number not in self.over:
            size, padding = self._frames[self._turn % len(self._frames)]
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
            if room <= 0:
                return
            padding = min(padding, room - 2) if room > 2 else 0
            size = min(size, room - padding - 1 if padding else room)
            self.h2.send_data(number, bytes(waiting[:size]), pad_length=padding or None)
            del waiting[:size]
            self._turn += 1
        if number in self.ending - self.over:
            self.ending.discard(number)
            self._end(number)

    def _end(self, number: int) -> None:
        if self.is_client:
            self.h2.end_stream(number)
        else:
            self.h2.send_headers(number, TRAILERS, end_stream=True)

    def _forget(self, number: int) -> None:
        self.over.add(number)
        self.unsent.pop(number, None)
