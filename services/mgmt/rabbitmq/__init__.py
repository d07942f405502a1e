"""What RabbitMQ's tools know, in RabbitMQ's words: objects of virtual hosts, users, definitions."""
