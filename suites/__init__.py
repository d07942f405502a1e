"""The own test suites of client libraries, at Hopline and at RabbitMQ."""
