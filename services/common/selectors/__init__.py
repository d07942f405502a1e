"""Message selectors: the conditions of JMS (Jakarta Messaging 3.1, 3.8.1), with what Broker-J adds to them. Pure."""
