"""A store's data, carried from one provider to another, or to a file and back; nothing of it is served meanwhile."""
