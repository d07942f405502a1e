"""Long-lived gRPC streams on the event loop itself: what messages travel on. See README.md."""
