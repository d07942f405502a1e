"""Streams of gateways, and of queue processes that dead-letter here: what comes, what goes, what each holds."""
