"""What goes to disk, what is known to be there, and when a batch is done."""
