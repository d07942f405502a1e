"""What became of definitions, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator

from services.common.definitions import LeftOut, Taken
from services.common.printable import printable


def lines(taken: Taken) -> Iterator[str]:
    """How much is here, then each thing that is not."""
    if there := [f"{count} {name.replace('_', ' ')}" for name, count in taken.taken.items() if count]:
        yield f"taken: {', '.join(there)}"
    if taken.left_out:
        yield f"not taken, or not as it was: {len(taken.left_out)}"
    yield from map(_line, taken.left_out)


def _line(each: LeftOut) -> str:
    where = f" in vhost {printable(each.vhost)}" if each.vhost else ""
    return f"  {printable(each.kind)}: {printable(each.name)}{where}: {printable(each.reason)}"


def indented(definitions: bytes) -> str:
    """For a file that people read too."""
    return json.dumps(json.loads(definitions), indent=2, ensure_ascii=False)
