"""What we run on: adapters of the engine's ports, named after their technology."""
