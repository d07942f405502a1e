"""Events of the stack, published on NATS for any subscriber. See README.md beside this file."""
