"""What commands of `hopline` show that is more than a line."""
