"""What was changed of a queue since it was declared, and what its arguments come to with that.

What it was declared with stays beside: clients that declare it again say that, and need not know of the change.
To have another argument changed: the queue must heed it from one moment to the next (`Queue.adopt`), and its name here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.common.arguments import queue
from services.common.arguments.reading import KNOWN, Wrong, checked, said
from services.common.message import arguments

CHANGEABLE: Final = frozenset(
    each.name
    for each in (
        queue.DEAD_LETTER_EXCHANGE,
        queue.DEAD_LETTER_KEY,
        queue.DEFAULT_FILTERS,
        queue.DELIVERY_LIMIT,
        queue.EXPIRY,
        queue.LEAST_TTL,
        queue.MAX_LENGTH,
        queue.MAX_LENGTH_BYTES,
        queue.MESSAGE_TTL,
        queue.NO_LOCAL,
        queue.OVERFLOW,
        queue.RESUME_BYTES,
    )
)


def now(declared: bytes, changed: bytes) -> bytes:
    """Arguments as they count: those of the declaration, but for what was changed."""
    return arguments.dump(table_now(arguments.load(declared), arguments.load(changed))) if changed else declared


def table_now(declared: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """The same of tables."""
    if not changed:
        return dict(declared)
    unknown = {name: value for name, value in declared.items() if name not in KNOWN}
    found = {**unknown, **said(declared), **changed}
    return {name: value for name, value in found.items() if value is not None}


def added(declared: Mapping[str, Any], former: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What is changed with `more` to it: nothing of what is as it was declared. Raises Wrong for what cannot be."""
    for name in more:
        if name not in CHANGEABLE:
            raise Wrong(name, "is fixed when the queue is declared")
    its, found = said(declared), {**former, **more}
    checked({name: value for name, value in more.items() if value is not None})
    return {name: value for name, value in found.items() if value != its.get(name)}
