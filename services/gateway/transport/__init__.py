"""Sockets: where clients are listened for, and what comes before the first byte of a protocol."""
