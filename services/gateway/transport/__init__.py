"""Sockets: listening for clients, and everything that comes before the first byte of a protocol."""
