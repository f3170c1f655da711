"""The built-in provider without a model."""
