"""What the router decides: routes, remembered; exclusive queues that go with their connection."""
