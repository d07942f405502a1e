"""HTTP/2 as gRPC uses it, without I/O: bytes in, events out; messages in, bytes out. See README.md."""
