"""What of a queue is next."""
