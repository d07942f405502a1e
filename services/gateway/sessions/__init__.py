"""Sessions of connections: order, credit, settlement, confirms, transactions; and the broker as they see it."""
