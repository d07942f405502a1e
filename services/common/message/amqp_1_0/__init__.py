"""AMQP 1.0's type system (part 1 of the specification), and the message format that is written in it (part 3)."""
