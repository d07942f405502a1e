"""The methods of AMQP 0-9-1 and RabbitMQ's extensions, a file for each class, to be read beside the XML.

Fields stand in the order of the wire. `no_wait` is the XML's no-wait and nowait, `global_` its global.
"""
