"""Spans: their conventions, which messages get them, and how a process exports them. See the README."""
