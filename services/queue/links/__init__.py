"""Streams of gateways, and of queue processes that dead-letter here: frames in and out, and what each peer holds."""
