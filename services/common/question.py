"""What a look-up is asked."""

from __future__ import annotations

LONGEST_ID = 1024  # characters
MOST_JOURNEYS = 100
