"""What a declaration can say of a queue: each argument once, for the router, which checks, and queues, which read."""
