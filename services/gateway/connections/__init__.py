"""Connections of clients: the loop between a socket, an engine and sessions, and the limits for all connections."""
