"""Methods that lie otherwise on the wire in AMQP 0-9, and its own; to be read beside its XML."""
