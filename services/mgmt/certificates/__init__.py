"""Key stores and trust stores: what is in them, whether it fits together, and the records that keep them."""
