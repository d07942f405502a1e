"""RabbitMQ's management API below /api, as its tools need it."""
