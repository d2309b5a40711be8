"""What it means to survive a call: an answer, or one sentence of ours."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import advdiff

ROOT = Path(advdiff.__file__).parent


def complaint(call: Callable[[], object]) -> str | None:
    """None if the call returns or is refused by a ``ValueError`` of this library itself, else what happened."""
    try:
        call()
    except ValueError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if Path(last.filename).is_relative_to(ROOT) and str(error).strip():
            return None
        return f"a raw ValueError of {last.filename}:{last.lineno}: {error}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {last.filename}:{last.lineno}: {str(error)[:200]}"
    return None
