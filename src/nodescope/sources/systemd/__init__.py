"""systemd: its bus, its journal and its unit files, each without the others."""
