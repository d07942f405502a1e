"""Broker-J's REST: /api/latest and /service, over the tree of configured objects."""
