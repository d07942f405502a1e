"""Who is connected: the loop between a socket, an engine and sessions, and what bounds all of them together."""
