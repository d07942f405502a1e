"""What one consumer wants of what waits."""

from __future__ import annotations

from typing import Final

from services.common.selectors.message import MessageView
from services.common.selectors.selector import Selector
from services.common.selectors.term import Equality
from services.queue.machine.entry import Entry

_SELECTOR: Final = 100  # characters that are evaluated in the time of a look


class Interest:
    """Of a consumer: `required` is what every message has that it wants; None as `selector` is everything.

    What came on the connection `not_of` it does not want; nor, of what has its place before `new`, what was received
    before `since` (Unix ms): what comes after it, it gets whatever its gateway's clock says. `refused` are the uids of
    messages that it is not to have again, in the order in which it has said so, and whether they are known to be here.
    """

    __slots__ = ("_new", "_not_of", "_selector", "_since", "cost", "refused", "required")

    def __init__(self, selector: Selector | None, not_of: str = "", *, since: int = 0, new: int = 0) -> None:
        self._selector = selector
        self._not_of = not_of
        self._since = since
        self._new = new
        self.cost = 1 + (len(selector.text) // _SELECTOR if selector else 0)
        """Looks that it takes the time of."""
        self.required: frozenset[Equality] = selector.required if selector else frozenset()
        self.refused: dict[int, bool] = {}

    @property
    def takes_all(self) -> bool:
        """Whether it wants whatever there is."""
        return not (self._selector or self._not_of or self._new or self.refused)

    def wants(self, entry: Entry, view: MessageView) -> bool:
        """Whether it is to have it; `view` is the entry's."""
        if self.refused and entry.message.uid in self.refused:
            self.refused[entry.message.uid] = True
            return False
        if entry.position < self._new and entry.message.received < self._since:
            return False
        if self._not_of and view.facts.publisher == self._not_of:
            return False
        return self._selector is None or self._selector.selects(view.look_up)


def view_of(entry: Entry) -> MessageView:
    """An entry as selectors see it."""
    message = entry.message
    return MessageView(message.facts, message.properties, expires=entry.expires, redelivered=entry.attempts > 0)
