"""How much there may be in what a peer says: who reads it decodes it in one go, and all others wait meanwhile.

Values are counted, those within others too, and keys of maps; what is little is not counted, since each takes a byte.
"""

from __future__ import annotations

from typing import Final

LITTLE: Final = 4096
"""Bytes in which there cannot be many values."""
MOST_SENT: Final = 2000
"""Values in the properties of a message that is published: about a millisecond to read."""
MOST_READ: Final = 4096
"""Values that are read at once. More than a publisher may send: who dead-letters a message adds to its headers."""
MOST_SECTIONS: Final = 1024
"""Of a message of AMQP 1.0; only those of its body may be many (part 3, section 3.2: data, and amqp-sequence)."""
