"""What the lines of a head over HTTP may be, before they are parsed.

h11 looks for the value of a line with an expression that takes the square of the spaces before it: 64 KiB of them, with
an octet behind them that may not be there, take it seven seconds. Anybody can send them, before signing in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

LINES: Final = 256
"""Of one head, or of what follows a body in chunks."""
BYTES: Final = 64 << 10
_SPACES: Final = b" " * 256


def fault_of(lines: Sequence[bytes | bytearray]) -> str | None:
    """Why they are not to be parsed, if so; lines without their ends."""
    if len(lines) > LINES:
        return f"more than {LINES} header lines"
    if sum(map(len, lines)) > BYTES:
        return f"header lines of more than {BYTES} bytes"
    if any(_SPACES in line.replace(b"\t", b" ") for line in lines):
        return f"{len(_SPACES)} spaces in a row in a header line"
    return None
