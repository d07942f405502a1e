"""The 0-9-1 family: AMQP 0-9-1 with RabbitMQ's extensions. A version is data (version.py); the engine walks it."""
