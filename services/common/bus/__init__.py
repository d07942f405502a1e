"""What happens in the stack, told to whoever listens: events on NATS. See README.md beside this file."""
