"""Discord, by its gateway and REST."""
