"""What a process counts: instruments, and their values. See README.md beside this file."""
