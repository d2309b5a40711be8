"""What a trained model attends to: the matrices C_h of its layers, on one graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from advdiff.nn.conv import AdvDiffConv


def attention_maps(model: nn.Module, run: Callable[[nn.Module], Any]) -> Tensor:
    """C_h of every AdvDiffConv while ``run(model)`` goes through it, [layers, H, N, N], layer by layer.

    The matrices are dense, so this is for small graphs: one molecule, not Arxiv. Rows sum to one; in row u stands what
    node u takes from each node.

    Args:
        model: with at least one layer of the paper that has attention.
        run: calls the model on the graph, for example ``lambda model: model(x, edge_index)``.

    Raises:
        ValueError: no layer with attention was run.

    Example:
        >>> import torch
        >>> from advdiff.nn import attention_maps, build
        >>> model = build("advdifformer-s", 3, 8, 2, heads=2)
        >>> edge_index = torch.tensor([[0, 1], [1, 2]])
        >>> C = attention_maps(model, lambda model: model(torch.randn(4, 3), edge_index))
        >>> C.shape, torch.allclose(C.sum(-1), torch.ones(1, 2, 4))
        (torch.Size([1, 2, 4, 4]), True)
    """
    found: list[Tensor] = []

    def keep(layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        assert isinstance(layer, AdvDiffConv)
        given = inspect.signature(layer.forward).bind(*inputs, **named).arguments
        attention = layer.attention(given["x"], given.get("batch"))
        if attention is not None:
            dense = attention.to_dense()
            found.append(dense if dense.dim() == 3 else dense[None])

    hooks = [m.register_forward_pre_hook(keep, with_kwargs=True) for m in model.modules() if isinstance(m, AdvDiffConv)]
    was_training = model.training
    try:
        model.eval()
        with torch.no_grad():
            run(model)
    finally:
        model.train(was_training)
        for hook in hooks:
            hook.remove()
    if not found:
        raise ValueError("the model has no layer with attention: only AdvDiffConv with diffusion=True has one.")
    return torch.stack(found)
