"""What an operator does about troubles that more than one service tells of, in the words of a log line's `do`."""

from __future__ import annotations

from typing import Final

STORE: Final = "see that the store runs; it goes on by itself"
ROUTER: Final = "see that a router runs; it goes on by itself"
SLOW: Final = "see that the store answers, and that this process gets its share of the machine"
TRIED_AGAIN: Final = "it is tried again; if it stays so, report it with these lines"
