"""Which partitions this process has, how they come and go, and the queues in them."""
