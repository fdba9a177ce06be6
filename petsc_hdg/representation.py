"""Objects that show themselves to people: a table in notebooks, public names alone in tab completion."""

from __future__ import annotations

from html import escape


class Described:
    """An object with facts. PUBLIC: the names that completion offers, those of the guide."""

    PUBLIC: tuple[str, ...] = ()

    def facts(self) -> dict[str, str]:
        """What the object is, in words by headings. Not collective."""
        raise NotImplementedError

    def __dir__(self) -> list[str]:
        return sorted(self.PUBLIC)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in self.facts().items() if v)
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"
