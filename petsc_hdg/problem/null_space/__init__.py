"""Null spaces of a problem, and the data and solutions that go with them."""
