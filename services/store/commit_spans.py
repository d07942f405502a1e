"""`commit`: one span for a group, with a link to each traced message that it put on disk."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.clock import epoch_ns
from services.common.telemetry import conventions as c
from services.common.telemetry.context import SpanContext, new_root
from services.common.telemetry.span import Attributes, Span, SpanLink
from services.common.telemetry.tracer import OFF, Tracer

_LINKS = 128  # on one span: as many as tools can take


class CommitSpans:
    """The commit spans of one store; `provider` is the name of its provider."""

    def __init__(self, tracer: Tracer = OFF, provider: str = "") -> None:
        self._tracer = tracer
        self._provider = provider

    def committed(self, contexts: Sequence[bytes], messages: int, start_ns: int, writing_ns: int) -> None:
        """A group is on disk; it was begun at `start_ns`, and its writing at `writing_ns`."""
        if not self._tracer.on:
            return
        now = epoch_ns()
        attributes: Attributes = {
            c.MESSAGING_SYSTEM: c.SYSTEM,
            c.OPERATION_NAME: c.COMMIT,
            c.BATCH_COUNT: messages,
            c.WRITE_MS: (now - writing_ns) / 1e6,
            c.PROVIDER: self._provider,
        }
        # The same message is journalled once for each queue process that has it.
        links = [SpanLink(SpanContext.from_bytes(context), {}) for context in dict.fromkeys(contexts)]
        for first in range(0, len(links), _LINKS):
            some = links[first : first + _LINKS]
            span = Span(c.COMMIT, c.Kind.INTERNAL, new_root(), None, dict(attributes), some, start_ns=start_ns)
            self._tracer.end(span, now)
