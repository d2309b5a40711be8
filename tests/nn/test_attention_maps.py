"""What a trained model attends to."""

from __future__ import annotations

import pytest
import torch

from advdiff.nn import AdvDiffConv, attention_maps, build

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_they_are_the_matrices_that_the_layers_use():
    torch.manual_seed(0)
    model = build("advdifformer-i", 3, 8, 2, heads=2, num_layers=2, dropout=0.5, theta=2.0)
    x = torch.randn(5, 3)
    model.train()
    C = attention_maps(model, lambda model: model(x, EDGES))
    assert C.shape == (2, 2, 5, 5) and model.training
    assert not any(layer._forward_pre_hooks for layer in model.modules())
    torch.testing.assert_close(C.sum(-1), torch.ones(2, 2, 5))
    first = next(layer for layer in model.modules() if isinstance(layer, AdvDiffConv))
    states = []
    hook = first.register_forward_pre_hook(lambda layer, inputs: states.append(inputs[0]))
    model.eval()(x, EDGES)
    hook.remove()
    query, key = (torch.nn.functional.normalize(f(states[0]).view(5, 2, 8), dim=-1) for f in (first.query, first.key))
    weight = 1 + torch.einsum("uhd,vhd->huv", query, key)
    torch.testing.assert_close(C[0], weight / weight.sum(-1, keepdim=True))


def test_one_head_graphs_of_a_batch_and_models_without_attention():
    model = build("advdifformer-s", 3, 8, 2)
    batch = torch.tensor([0, 0, 0, 1, 1])
    C = attention_maps(model, lambda model: model(torch.randn(5, 3), EDGES, batch=batch))
    assert C.shape == (1, 1, 5, 5) and not C[0, 0, :3, 3:].any()
    for other in (build("gcn", 3, 8, 2), build("advdifformer-s", 3, 8, 2, diffusion=False)):
        with pytest.raises(ValueError, match="no layer with attention"):
            attention_maps(other, lambda model: model(torch.randn(5, 3), EDGES))


@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_they_stay_on_the_device_of_the_input(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model, x, edges = build("advdifformer-s", 3, 8, 2).to(device), torch.randn(3, 3, device=device), EDGES.to(device)
    assert attention_maps(model, lambda model: model(x, edges)).device.type == device
