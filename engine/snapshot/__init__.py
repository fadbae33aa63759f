"""The snapshot: its files, how they are written and how they are opened."""
