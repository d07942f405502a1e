"""What a topology is made of, and where messages go by it: for the router, which changes it, and for who has a copy."""
