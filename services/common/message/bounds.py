"""How much there may be in what a peer says: who reads it decodes it in one go, and all others wait meanwhile.

Values are counted, those within others too, and keys of maps; what is little is not counted, since each takes a byte.
"""

from __future__ import annotations

from typing import Final

LITTLE: Final = 4096
"""Bytes in which there cannot be many values."""
MOST_SENT: Final = 2000
"""Values in the properties of a message that is published: one or two milliseconds to count, up to six to read."""
MOST_READ: Final = 4096
"""Values that are read at once of what a peer says."""
MOST_KEPT: Final = 65_536
"""Values in the properties of a message that the broker has: far more than a publisher may send, since each who
dead-letters it adds to its headers, and a former release took any number. Up to 150 milliseconds to read, in which all
others wait.
"""
MOST_SECTIONS: Final = 1024
"""Of a message of AMQP 1.0; only those of its body may be many (part 3, section 3.2: data, and amqp-sequence)."""
