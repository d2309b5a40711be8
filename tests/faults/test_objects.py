"""Public functions and models given something else than they ask for: a list, None, an array, another tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch

import advdiff
from advdiff.experiments import metrics
from advdiff.nn import AdvDiffConv, AdvDIFFormer, build, model_names
from advdiff.theory import bounds, critical, gap, graph_statistics, norms, shifts, variation
from tests.faults.survive import complaint

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
V, W = advdiff.normalize_adjacency(EDGES, 4), advdiff.normalize_adjacency(EDGES.flip(1)[:, :4], 4)
C = advdiff.Attention(X, X)
L, M = advdiff.Generator(C, V), advdiff.Generator(C, W)
READOUT = gap.fit_readout(X, X[:, :1])
LABELS = torch.tensor([0, 1, 1, 0])

#: Every callable with arguments that are right.
CALLS: dict[str, tuple[Callable[..., object], dict[str, object]]] = {
    "normalize_adjacency": (
        advdiff.normalize_adjacency,
        {"edge_index": EDGES, "num_nodes": 4, "edge_weight": torch.ones(6), "kind": "row", "self_loops": "all"},
    ),
    "gradient": (advdiff.gradient, {"Z": X, "edge_index": EDGES}),
    "divergence": (advdiff.divergence, {"E": torch.ones(6, 2), "edge_index": EDGES, "num_nodes": 4}),
    "Attention": (advdiff.Attention, {"query": X, "key": X, "batch": torch.tensor([0, 0, 0, 0])}),
    "Generator": (advdiff.Generator, {"coupling": C, "velocity": V, "beta": 0.5}),
    "V @": (lambda Z: V @ Z, {"Z": X}),
    "C @": (lambda Z: C @ Z, {"Z": X}),
    "L @": (lambda Z: L @ Z, {"Z": X}),
    "exponential": (advdiff.exponential, {"L": L, "Z": X, "time": 1.0, "method": "taylor", "tol": 1e-6, "order": 3}),
    "resolvent": (advdiff.resolvent, {"L": L, "Z": X, "theta": 1.0, "method": "dense", "tol": 1e-6}),
    "powers": (advdiff.powers, {"P": L.propagator, "Z": X, "order": 2, "source": X}),
    "bounds.local": (bounds.local, {"x": 0.1, "time": 1.0, "kind": "row"}),
    "bounds.growth": (bounds.growth, {"coupling": C, "beta": 0.5, "kind": "row"}),
    "bounds.powers": (bounds.powers, {"x": 0.1, "beta": 0.5, "order": 2, "norm_P": 1.0}),
    "critical_theta": (critical.critical_theta, {"edge_index": EDGES, "num_nodes": 4, "beta": 0.5}),
    "risk": (gap.risk, {"prediction": X[:, :1], "label": X[:, :1], "bound": 1.0}),
    "model_term": (gap.model_term, {"Z": X, "other": X, "norm": "frobenius"}),
    "label_term": (gap.label_term, {"Y": X, "other": X, "loss": 1.0}),
    "fit_readout": (gap.fit_readout, {"Z": X, "label": X[:, :1], "ridge": 0.1}),
    "decompose": (
        gap.decompose,
        {"readout": READOUT, "Z": X, "label": X[:, :1], "Z_new": X, "label_new": X[:, :1]},
    ),
    "summary": (graph_statistics.summary, {"edge_index": EDGES, "num_nodes": 4}),
    "degrees": (graph_statistics.degrees, {"edge_index": EDGES, "num_nodes": 4}),
    "log_norm": (norms.log_norm, {"M": torch.eye(3)}),
    "shift_size": (shifts.shift_size, {"V": V, "other": W, "norm": "spectral"}),
    "adjacency_shift": (shifts.adjacency_shift, {"edge_index": EDGES, "other": EDGES, "num_nodes": 4}),
    "variation.difference": (variation.difference, {"L": L, "other": M, "Z": X}),
    "variation.first_order": (variation.first_order, {"L": L, "other": M, "Z": X, "time": 1.0}),
    "mse": (metrics.mse, {"output": X, "target": X, "mask": LABELS == 1}),
    "accuracy": (metrics.accuracy, {"output": X, "target": LABELS, "mask": LABELS == 1}),
    "roc_auc": (metrics.roc_auc, {"output": X[:, :1], "target": LABELS, "mask": None}),
    "AdvDiffConv": (
        AdvDiffConv(3, 3, edge_dim=1),
        {"x": X, "edge_index": EDGES, "edge_weight": torch.ones(6), "edge_attr": torch.ones(6, 1), "batch": LABELS * 0},
    ),
    "AdvDIFFormer for edges": (
        AdvDIFFormer(3, 4, 1, task="edge"),
        {"x": X, "edge_index": EDGES, "edge_label_index": EDGES},
    ),
}
for _name in model_names():
    CALLS[_name] = (
        build(_name, 3, 4, 2, task="graph").eval(),
        {"x": X, "edge_index": EDGES, "edge_weight": torch.ones(6), "batch": LABELS * 0},
    )

WRONG: list[object] = [
    None, [], [[0, 1], [1, 0]], (1, 2), {"a": 1}, "four", b"4", object(), np.eye(4), np.array([[0, 1], [1, 0]]), 3, 2.5,
    True, 1j, float("nan"), float("inf"), -1, 2000, lambda: None, torch.nn.Linear(2, 2),
    torch.tensor(1.0), torch.tensor([]), torch.ones(4), torch.ones(4, 3, dtype=torch.complex64),
    torch.ones(4, 3, dtype=torch.bool), torch.ones(4, 3, dtype=torch.int32), torch.ones(2, 6), torch.ones(5, 3),
    torch.ones(4, 7), torch.ones(1, 1, 1, 1), torch.full((4, 3), float("nan")), EDGES + 100, EDGES - 1, EDGES.float(),
    EDGES.T, torch.ones(6) * -1, torch.ones(4, 3, device="meta"), torch.ones(4, 3).to_sparse(),
    torch.zeros(4, dtype=torch.int64), torch.tensor([0, 0, 3, 10**9]), torch.ones(4, 3, dtype=torch.float16),
    torch.ones(4, 3, dtype=torch.float64), V, L,
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_or_one_sentence(name: str, tried: Callable[[int], None]) -> None:
    function, right = CALLS[name]
    function(**right)
    raw = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for argument in right:
            for wrong in WRONG:
                found = complaint(lambda: function(**{**right, argument: wrong}))  # noqa: B023
                if found:
                    raw.append(f"{argument}={str(wrong)[:60]!r}: {found}")
    assert not raw, f"{len(raw)} of {len(right) * len(WRONG)}:\n" + "\n".join(raw[:15])
    tried(len(right) * len(WRONG))
