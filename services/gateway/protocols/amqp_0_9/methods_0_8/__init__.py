"""Methods that lie otherwise on the wire in AMQP 0-8, and its own; to be read beside its XML."""
