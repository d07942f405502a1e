"""What some queues do besides: each in a file of its own, made only for queues whose arguments ask for it."""
