"""Authentication: providers (plug-ins) verify the claims of users, for every service that users sign in to."""
