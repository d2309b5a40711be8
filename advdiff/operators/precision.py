"""float16, bfloat16 and autocast: the mathematics is done in float32 all the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])
HALF = (torch.float16, torch.bfloat16)


def widened(tensor: Tensor) -> Tensor:
    """The tensor itself, or a float32 copy of one in half precision, to which gradients flow."""
    return tensor.float() if tensor.dtype in HALF else tensor


def full_precision(function: Function) -> Function:
    """Run the function with autocast off, which would do some of its products, and not others, in half precision."""

    @wraps(function)
    def inside(*args: Any, **options: Any) -> Any:
        tensors = (a for a in (*args, *options.values()) if isinstance(a, Tensor))
        first = next(tensors, None)
        kind = "cpu" if first is None or first.device.type == "meta" else first.device.type
        with torch.autocast(kind, enabled=False):
            return function(*args, **options)

    return cast(Function, inside)
