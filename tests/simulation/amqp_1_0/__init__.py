"""Clients of AMQP 1.0: they write and read with our own codec, which tests of its own hold to the specification."""
