"""Decisions: pure functions from facts to what to do; now and u are arguments."""
