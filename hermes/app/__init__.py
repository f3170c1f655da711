"""Composition root: builds, wires, supervises."""
