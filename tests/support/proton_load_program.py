"""qpid-proton under load, which reconnects by itself: run by the Python that python3-qpid-proton is for.

proton_load_program.py QUEUE COUNT URL…: sends so many durable messages, numbered, and takes them again. What is not
accepted when a connection ends is sent again on the next. Says a line of JSON for each thousand that was accepted, and
one at the end: what was accepted, what came, and how often a connection was lost.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from proton import Message  # type: ignore[import-not-found]
from proton.handlers import MessagingHandler  # type: ignore[import-not-found]
from proton.reactor import AtLeastOnce, Container  # type: ignore[import-not-found]

_TELL = 1000


class Load(MessagingHandler):  # type: ignore[misc]
    """A sender and a receiver, each on a connection of its own."""

    def __init__(self, queue: str, count: int, urls: list[str]) -> None:
        super().__init__(prefetch=200, auto_accept=True)
        self._queue, self._count, self._urls = queue, count, urls
        self._waiting = list(range(count, 0, -1))  # the next one is at the end
        self._under_way: dict[Any, int] = {}
        self._accepted: set[int] = set()
        self._came: set[int] = set()
        self._lost = 0

    def on_start(self, event: Any) -> None:
        self._sends, receives = (
            event.container.connect(urls=self._urls, heartbeat=5, allowed_mechs="PLAIN") for _ in range(2)
        )
        event.container.create_sender(self._sends, self._queue, options=AtLeastOnce())
        event.container.create_receiver(receives, self._queue)

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self._waiting:
            number = self._waiting.pop()
            delivery = event.sender.send(Message(body=number, durable=True))
            self._under_way[delivery] = number

    def on_accepted(self, event: Any) -> None:
        number = self._under_way.pop(event.delivery, None)
        if number is None:
            return
        self._accepted.add(number)
        if len(self._accepted) % _TELL == 0:
            _say({"accepted": len(self._accepted)})
        self._end_when_done(event)

    def on_released(self, event: Any) -> None:
        self._again(event)

    def on_rejected(self, event: Any) -> None:
        self._again(event)

    def _again(self, event: Any) -> None:
        number = self._under_way.pop(event.delivery, None)
        if number is not None:
            self._waiting.append(number)

    def on_message(self, event: Any) -> None:
        self._came.add(event.message.body)
        self._end_when_done(event)

    def on_connection_opened(self, event: Any) -> None:
        """Also again: what was not answered on the former connection never will be."""
        if event.connection == self._sends:
            self._waiting.extend(self._under_way.values())
            self._under_way.clear()

    def on_transport_error(self, event: Any) -> None:
        self._lost += 1

    def _end_when_done(self, event: Any) -> None:
        if len(self._accepted) < self._count or not self._accepted <= self._came:
            return
        _say({"accepted": len(self._accepted), "came": len(self._came), "lost": self._lost, "done": True})
        event.container.stop()


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)  # noqa: T201 - that is how it answers


Container(Load(sys.argv[1], int(sys.argv[2]), sys.argv[3:])).run()
