"""Bad input of the model and the layer: a ``ValueError`` that names the argument and says what would be right."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from advdiff.nn import AdvDiffConv, AdvDIFFormer
from tests.cases import BY_NAME
from tests.nn.dense import every_solver

WIDTH = 4
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "fast"}, "unknown solver 'fast'; choose one of: series, inverse, exponential"),
        ({"task": "link"}, "unknown task 'link'; choose one of: node, edge, graph"),
        ({"normalization": "column"}, "unknown kind of normalisation 'column'; choose one of: symmetric, row"),
        ({"beta": -0.5}, "beta is -0.5; it must be a finite number that is not negative"),
        ({"beta": NAN}, "beta is nan"),
        ({"time": -1.0}, "time is -1; it must be"),
        ({"heads": 0}, "heads=0 must be at least 1"),
        ({"order": -1}, "order=-1 at least 0"),
        ({"num_layers": 0}, "num_layers must be at least 1"),
    ],
    ids=str,
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdvDIFFormer(WIDTH, 6, 2, **options)


EDGES = BY_NAME["undirected"].edge_index  # 8 nodes, 24 edges
X, ONES, ATTR = (torch.ones(shape, dtype=torch.float64) for shape in ((8, WIDTH), (24,), (24, 2)))


def with_entry(tensor: Tensor, value: float) -> Tensor:
    changed = tensor.clone()
    changed.view(-1)[1] = value
    return changed


BAD_INPUT = [
    ({}, {"x": X[:, :3]}, r"x has shape \(8, 3\); the model expects \[N, 4\]"),
    ({}, {"x": X[:, 0]}, r"x has shape \(8,\)"),
    ({}, {"x": with_entry(X, NAN)}, "x holds 1 NaN or infinite entries; it must be finite"),
    ({}, {"x": with_entry(X, -INF)}, "x holds 1 NaN or infinite entries"),
    ({}, {"x": X.long()}, "x has dtype torch.int64; it must be floating point"),
    ({}, {"edge_index": EDGES + 1}, "edge_index names nodes 1 to 8, .* the valid numbers are 0 to 7"),
    ({}, {"edge_index": EDGES.double()}, "edge_index has dtype torch.float64"),
    ({}, {"edge_index": EDGES.T}, r"edge_index has shape \(24, 2\); it must be \[2, number of edges\]"),
    ({}, {"edge_weight": with_entry(ONES, -1.0)}, "edge_weight holds negative entries"),
    ({}, {"edge_weight": with_entry(ONES, NAN)}, "edge_weight holds 1 NaN"),
    ({}, {"edge_weight": ONES[1:]}, r"edge_weight has shape \(23,\)"),
    ({}, {"batch": torch.zeros(7, dtype=torch.int64)}, r"batch has shape \(7,\)"),
    ({}, {"batch": torch.arange(8)}, "24 edges join nodes of different graphs"),
    ({}, {"edge_attr": ATTR}, "edge_attr was given but edge_dim is None"),
    ({"edge_dim": 2}, {"edge_attr": None}, "edge_dim is 2 but edge_attr was not given"),
    ({"edge_dim": 2}, {"edge_attr": ATTR[1:]}, r"edge_attr has shape \(23, 2\); it must be \[24, 2\]"),
    ({"edge_dim": 3}, {"edge_attr": ATTR}, r"edge_attr has shape \(24, 2\); it must be \[24, 3\]"),
    ({"edge_dim": 2}, {"edge_attr": with_entry(ATTR, NAN)}, "edge_attr holds 1 NaN"),
    ({"task": "edge"}, {"edge_label_index": None}, "task='edge' needs edge_label_index"),
    ({"task": "edge"}, {"edge_label_index": EDGES + 1}, "edge_label_index names nodes 1 to 8"),
    ({"theta": NAN, "solver": "inverse"}, {}, "theta is nan; it must be a finite number"),
]


@pytest.mark.parametrize(("options", "changes", "message"), BAD_INPUT, ids=[message for *_, message in BAD_INPUT])
def test_bad_input(options: dict, changes: dict, message: str) -> None:
    model = AdvDIFFormer(WIDTH, 6, 2, **options).double()
    with pytest.raises(ValueError, match=message):
        model(**{"x": X, "edge_index": EDGES, **changes})


@every_solver
@pytest.mark.parametrize(
    ("x", "message"),
    [(X[:, :3], "x has shape"), (X.long(), "x has dtype torch.int64"), (with_entry(X, NAN), "x holds 1 NaN")],
    ids=["width", "integer", "nan"],
)
def test_bad_input_of_the_layer(solver: str, x: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AdvDiffConv(WIDTH, WIDTH, solver=solver).double()(x, EDGES)
