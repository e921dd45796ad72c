"""Protocols and encodings of other programs: gRPC, HTTP, D-Bus, Protocol Buffers, JSON."""
