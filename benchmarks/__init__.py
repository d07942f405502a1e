"""The same load on Hopline and on a peer, side by side: `python -m benchmarks`."""
