"""Network devices, their interrupts, and the packet work of each core."""
