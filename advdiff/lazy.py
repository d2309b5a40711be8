"""Public names that are imported on first use: torch takes seconds, which ``advdiff --help`` need not wait for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def attach(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package: ``homes`` says in which of its modules each public name lives (PEP 562)."""

    def __getattr__(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
