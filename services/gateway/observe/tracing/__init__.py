"""Spans of a gateway: `receive` for what is published, `send` for what is delivered, and how both end.

Messages without spans cost one look at their kind.
"""
