"""The configured-object model of Broker-J, declared: categories, attributes, operations, statistics. Pure."""
