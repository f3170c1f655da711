"""Configuration: the only reader of files and environment."""
