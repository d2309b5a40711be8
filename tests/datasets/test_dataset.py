"""Data sets by name and of one's own: metrics, roles, and graphs that do not fit together."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Data

from advdiff.datasets import DATASETS, Dataset, load, metric_of
from tests import miniatures

RING = torch.tensor([[0, 1, 2], [1, 2, 0]])
METRICS = [
    ("synthetic", {}, "mse"),
    ("synthetic", {"shift": "block", "num_nodes": 20}, "mse"),
    ("small_graphs", {"num_graphs": 8}, "mse"),
    ("twitch", {}, "roc_auc"),
    ("arxiv", {"features": "text"}, "accuracy"),
    ("dppin", {}, "rmse"),
    ("dppin", {"task": "node"}, "rmse"),
    ("dppin", {"task": "edge", "graph": "previous"}, "rmse"),
    ("dppin", {"task": "link"}, "roc_auc"),
    ("ham", {}, "accuracy"),
    ("molbace", {}, "roc_auc"),
    ("molsider", {}, "roc_auc"),
]


@pytest.mark.parametrize(("name", "options", "metric"), METRICS)
def test_the_metric_with_and_without_the_data(data_folder, name, options, metric):
    assert metric_of(name, **options) == metric  # there are no files yet
    if name == "ham":
        pytest.importorskip("rdkit")
    if name in miniatures.NAMES:
        miniatures.write(name, data_folder)
    assert load(name, **options).metric == metric


def test_the_metric_needs_no_slow_imports():
    code = (
        "import sys; from advdiff.datasets import DATASETS, metric_of; "
        "[metric_of(name) for name in DATASETS]; print('torch_geometric' in sys.modules, 'pooch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() == ["False"] * 2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dpin", {}, "unknown data set 'dpin'"),
        ("dppin", {"task": "graph"}, "unknown task 'graph'; choose one of: node, edge, link"),
        ("dppin", {"tasks": "link"}, "dppin has no option 'tasks'"),
        ("twitch", {"task": "node"}, "twitch has no option 'task'"),
    ],
)
def test_no_metric_of_what_is_not_there(name, options, message):
    with pytest.raises(ValueError, match=message):
        metric_of(name, **options)


def graph(**changes) -> Data:
    given = {"x": torch.rand(3, 5), "edge_index": RING, "y": torch.tensor([0, 1, 1])} | changes
    return Data(**{key: value for key, value in given.items() if value is not None})


def parts(*graphs, **environments):
    return {"train": list(graphs), "valid": [graphs[0]], "test": [graphs[-1]]} | environments


@pytest.mark.parametrize(
    ("task", "metric", "y", "more", "out"),
    [
        ("node", "accuracy", torch.tensor([0, 1, 3]), {}, 4),
        ("node", "accuracy", torch.tensor([0, 0, 0]), {}, 2),
        ("node", "roc_auc", torch.tensor([0, 1, 1]), {}, 2),
        ("node", "roc_auc", torch.tensor([[0.0, 1.0], [1.0, 1.0], [float("nan"), 0.0]]), {}, 2),
        ("node", "mse", torch.rand(3), {}, 1),
        ("node", "rmse", torch.rand(3, 2), {}, 2),
        ("node", "mse", torch.tensor([4, 5, 6]), {}, 1),
        ("graph", "accuracy", torch.tensor([6]), {}, 7),
        ("graph", "roc_auc", torch.tensor([[1.0, 0.0, float("nan")]]), {}, 3),
        ("edge", "accuracy", torch.tensor([[1.0], [0.0]]), {"edge_label_index": RING[:, :2]}, 1),
        ("node", "accuracy", torch.tensor([0, 1, -1]), {"mask": torch.tensor([True, True, False])}, 2),
    ],
)
def test_columns_and_classes_are_inferred(task, metric, y, more, out):
    data = Dataset.from_graphs(parts(graph(y=y, **more)), task=task, metric=metric)
    assert (data.in_channels, data.out_channels, data.edge_dim) == (5, out, None)
    assert (data.train, data.valid, data.test, data.name) == (("train",), ("valid",), ("test",), "custom")
    assert (data.task, data.metric, data.options) == (task, metric, {})
    with_edges = parts(graph(y=y, edge_attr=torch.rand(3, 7), **more))
    assert Dataset.from_graphs(with_edges, task=task, metric=metric).edge_dim == 7


def test_classes_may_be_in_any_environment():
    data = Dataset.from_graphs(parts(graph(), graph(y=torch.tensor([5, 0, 0]))), task="node", metric="accuracy")
    assert data.out_channels == 6


def test_roles_and_names():
    given = parts(graph())
    for number in range(3):
        given[f"#{number}"] = [graph(), graph()]
    named = Dataset.from_graphs(
        given, task="node", metric="accuracy", train=["#0", "train"], valid=["valid"], test=["#1", "#2"], name="mine"
    )
    assert (named.train, named.valid, named.test) == (("#0", "train"), ("valid",), ("#1", "#2"))
    assert repr(named) == "Dataset(mine; 6 environments, 9 graphs)" and len(named.graphs(*named.train)) == 3
    del given["test"]
    assert Dataset.from_graphs(given, task="node", metric="accuracy").test == ()


def test_sparse_features_and_meta_tensors():
    sparse = graph(x=torch.eye(3).to_sparse_csr())
    assert Dataset.from_graphs(parts(sparse), task="node", metric="accuracy").in_channels == 3
    meta = graph(y=torch.rand(3, 2), mask=torch.ones(3).bool()).to("meta")
    assert Dataset.from_graphs(parts(meta), task="node", metric="mse").out_channels == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "nodes"}, "unknown task 'nodes'; choose one of: node, edge, graph"),
        ({"metric": "f1"}, "unknown metric 'f1'; choose one of: mse, rmse, accuracy, roc_auc"),
        ({"train": ["first"]}, "no environment 'first' for train; the environments are: train, valid, test"),
        ({"test": ["valid"]}, "environment 'valid' has two roles"),
        ({"train": ["train", "train"]}, "environment 'train' has two roles"),
        ({"valid": []}, "valid names no environment"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message) as error:
        Dataset.from_graphs(parts(graph()), **({"task": "node", "metric": "accuracy"} | options))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("task", "metric", "second", "message"),
    [
        (
            "node",
            "accuracy",
            {"x": torch.rand(3, 4)},
            "graph 1 of 'train' has 4 columns of x.* have 5 columns",
        ),
        ("node", "accuracy", {"edge_attr": torch.rand(3, 2)}, "2 columns of edge_attr, and .* no columns of edge_attr"),
        ("node", "mse", {"y": torch.rand(3, 2)}, "2 columns of labels"),
        ("node", "accuracy", {"y": torch.tensor([[0.0], [1.0], [1.0]])}, "1 columns of labels.*have .*class numbers"),
        ("node", "accuracy", {"x": None}, "must have x with rows and columns; it has none"),
        ("node", "accuracy", {"x": torch.rand(3)}, r"must have x with rows and columns; it has shape \(3,\)"),
        ("node", "accuracy", {"edge_attr": torch.rand(3)}, "must have edge_attr with rows and columns"),
        ("node", "accuracy", {"edge_attr": torch.rand(2, 2)}, "3 edges, and edge_attr 2 rows"),
        ("node", "accuracy", {"edge_index": None}, "has no edge_index"),
        ("node", "accuracy", {"edge_index": RING + 1}, "edge_index of graph 1 of 'train' names nodes 1 to 3"),
        ("edge", "accuracy", {}, "has no edge_label_index"),
        ("node", "accuracy", {"y": None}, "must have y with 3 rows for the task 'node'; it has none"),
        ("node", "accuracy", {"y": torch.tensor([0, 1])}, r"must have y with 3 rows .* it has shape \(2,\)"),
        ("graph", "accuracy", {}, "must have y with 1 rows for the task 'graph'"),
        ("node", "accuracy", {"y": torch.tensor([[0], [1], [1]])}, "class numbers must be integers of one dimension"),
        ("node", "accuracy", {"y": torch.tensor([True, False, True])}, "torch.bool of shape"),
        ("node", "accuracy", {"y": torch.tensor([0, 1, -1])}, "holds the class -1; classes are numbered from 0"),
        ("node", "accuracy", {"y": torch.tensor([0.0, 1.0, 2.0])}, "other numbers than 0, 1 and NaN"),
        ("node", "roc_auc", {"y": torch.tensor([0, 1, 2])}, "roc_auc is for yes-or-no labels, and y holds 3 classes"),
        ("node", "accuracy", {"mask": torch.tensor([0, 1])}, "mask of graph 1 of 'train' is torch.int64"),
    ],
)
def test_graphs_that_do_not_fit(task, metric, second, message):
    first = {"y": torch.tensor([1])} if task == "graph" else {"y": torch.rand(3, 1)} if metric == "mse" else {}
    if task == "edge":
        first["edge_label_index"] = RING
    with pytest.raises(ValueError, match=message) as error:
        Dataset.from_graphs(parts(graph(**first), graph(**second)), task=task, metric=metric)
    assert "\n" not in str(error.value) and str(error.value).endswith(".")


def test_no_graphs():
    with pytest.raises(ValueError, match="environment 'new' has no graphs"):
        Dataset.from_graphs(parts(graph(), new=[]), task="node", metric="accuracy")
    with pytest.raises(ValueError, match="no environment 'train' for train; the environments are: none"):
        Dataset.from_graphs({}, task="node", metric="accuracy")


# One graph with masks


def masked(**changes) -> Data:
    masks = dict(zip(("train_mask", "val_mask", "test_mask"), torch.eye(3).bool(), strict=True))
    return graph(**(masks | changes))


def test_masks_share_the_graph():
    given = masked(y=torch.tensor([0, 2, 1]))
    data = Dataset.from_masks(given, name="mine")
    assert (data.task, data.metric, data.out_channels, data.name) == ("node", "accuracy", 3, "mine")
    assert (data.train, data.valid, data.test) == (("train",), ("valid",), ("test",))
    for number, part in enumerate(("train", "valid", "test")):
        (own,) = data.graphs(part)
        assert own.mask.tolist() == [node == number for node in range(3)]
        assert own.x is given.x and own.edge_index is given.edge_index and own.y is given.y
        assert not {"train_mask", "val_mask", "test_mask"} & set(own.keys())
    assert "mask" not in given and "train_mask" in given, "what was given is left alone"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_mask": None}, "the graph has no val_mask"),
        ({"train_mask": torch.eye(3).bool()}, r"shape \(3, 3\); it must be torch.bool of shape \(3,\)"),
        ({"train_mask": torch.tensor([0])}, "train_mask is torch.int64"),
        ({"test_mask": torch.ones(3).bool()}, "the masks overlap"),
        ({"y": torch.tensor([[0], [1], [1]])}, "class numbers must be integers of one dimension"),
    ],
)
def test_masks_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        Dataset.from_masks(masked(**changes))
    assert "\n" not in str(error.value)


def test_a_model_trains_on_graphs_of_ones_own():
    from advdiff.experiments import fit
    from advdiff.experiments.recipe import Budget
    from advdiff.nn import build

    data = Dataset.from_masks(masked(y=torch.tensor([0, 1, 1])))
    network = build("gcn", data.in_channels, 4, data.out_channels)
    outcome = fit(network, data, budget=Budget(epochs=2, learning_rate=1e-2), progress=False).record.outcome
    assert outcome.status == "finished" and set(outcome.metrics) == {"train", "valid", "test"}


def test_every_name_has_a_metric():
    assert {name for name, *_ in METRICS} == set(DATASETS)
