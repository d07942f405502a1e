"""How much one turn of the event loop does: more would keep all else waiting, leases too."""

from __future__ import annotations

AT_ONCE = 5_000
"""Messages that are dropped, put back or given back: less than 10 ms, whatever a queue's order.

Read where it is used, so that a test can lower it for all.
"""

SCATTERED = 1_000
"""Messages that are taken out wherever they stand."""

REWRITTEN = 10
"""Messages that are written anew, with their annotations: less than 40 ms, whatever their headers."""

CLAIMED = 2_000
"""Messages that somebody says to hold, before it is known whether they are here."""

FOUND = 500
"""Of these, messages that are taken out wherever they stand: they get their holders besides."""

SEEN = 20_000
"""Messages that are looked at, wherever they stand, and stay there."""

LOOKS = 1_000
"""Messages that consumers look at which choose."""
