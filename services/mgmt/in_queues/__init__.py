"""Messages of queues, shown and moved by hand: asked of the processes that own the queues."""
