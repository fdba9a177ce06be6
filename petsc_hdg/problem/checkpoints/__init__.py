"""Checkpoints: when they are written, what they hold, and how a problem restarts from them."""
