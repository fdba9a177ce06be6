"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """ok: works; note: works with less; MISSING: needed and not there."""

    OK = "ok"
    NOTE = "note"
    MISSING = "MISSING"


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and how to get what is missing."""

    level: Level
    name: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{self.level.value:<8}{self.name:<14}{self.text}"
        return line + (f"\n{'':<22}→ {self.remedy}" if self.remedy else "")
