"""The management node of virtual hosts, over AMQP: the tree of configured objects, in AMQP Management's words."""
