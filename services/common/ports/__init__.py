"""Ports, as operators and gateways speak of them."""
