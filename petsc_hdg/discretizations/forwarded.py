"""Attributes that are those of a part of an object."""

from __future__ import annotations


class Forwarded:
    """An attribute that is the one of this name of the object's attribute `part`."""

    def __init__(self, part: str):
        self._part, self._name = part, ""

    def __set_name__(self, owner, name: str) -> None:
        self._name = name

    def __get__(self, whole, owner=None):
        return self if whole is None else getattr(getattr(whole, self._part), self._name)


def forwarded(part: str, count: int) -> tuple[Forwarded, ...]:
    """So many attributes of `part`, to be given their names by the assignment."""
    return tuple(Forwarded(part) for _ in range(count))
