"""Spans: their conventions, which messages get them, and how they leave a process. See the README."""
