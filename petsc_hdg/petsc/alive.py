"""PETSc objects that users can destroy while others work with them, which ends the interpreter in PETSc."""

from __future__ import annotations

from ..errors import PetscHdgError, SolveError


class Alive:
    """An attribute of a class that is a PETSc object, or None; reading it raises `kind` once the object was destroyed.

    what: the object, in words.   make: function of the instance that makes it at first use, as a cached property does.
    """

    def __init__(self, what: str, kind: type[PetscHdgError] = SolveError):
        self.what, self.kind, self._make, self._name = what, kind, None, ""

    def __call__(self, make) -> Alive:
        """Decorate the function that makes the object."""
        self._make, self.__doc__ = make, make.__doc__
        return self

    def __set_name__(self, owner, name: str) -> None:
        self._name = name

    def __set__(self, instance, value) -> None:
        vars(instance)[self._name] = value

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        kept = vars(instance)
        if self._name not in kept:
            if self._make is None:
                raise AttributeError(f"'{owner.__name__}' has no '{self._name}' yet")
            kept[self._name] = self._make(instance)
        return alive(kept[self._name], self.what, self.kind)


def alive(thing, what: str, kind: type[PetscHdgError] = SolveError):
    """A PETSc object, or None, as it is. Raises `kind` if it was destroyed."""
    if thing is not None and not thing.handle:
        raise kind(f"{what} was destroyed, and work on it goes on; destroy it when nothing needs it.")
    return thing
