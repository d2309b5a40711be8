"""``advdiff shard`` and ``advdiff train``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from advdiff.distributed.settings import add_arguments, settings_of


def add(commands: Any) -> None:
    shard = commands.add_parser(
        "shard",
        help="divide a graph among processes; then: torchrun --nproc-per-node P -m advdiff.distributed DIR",
        description="Divide a graph among P processes: one file for each, and none that holds the whole graph.",
    )
    shard.add_argument(
        "file",
        type=Path,
        help="a PyG Data saved by torch.save; or a folder of edge_index.npy, x.npy, y.npy, …, of any size",
    )
    shard.add_argument("--parts", type=int, required=True, metavar="P", help="number of processes")
    shard.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the parts")
    shard.add_argument(
        "--method", choices=("metis", "range"), help="metis cuts few edges (default for a file); range for a folder"
    )
    shard.set_defaults(run=_shard)
    train = commands.add_parser(
        "train",
        help="train AdvDIFFormer on one graph in one process, as advdiff.distributed does in several",
        description="Train AdvDIFFormer on one graph in one process; prints a line per epoch.",
    )
    train.add_argument("file", type=Path, help="a PyG Data saved by torch.save: x, edge_index, y, train_mask, val_mask")
    add_arguments(train)
    train.set_defaults(run=_train)


def _load(path: Path) -> Any:
    import pickle

    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    try:
        with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
            data = torch.load(path, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; name a file that torch.save(data, FILE) wrote.") from None
    except (RuntimeError, EOFError, pickle.UnpicklingError):
        raise ValueError(f"{path} cannot be read; write it with torch.save(data, FILE), data a PyG Data.") from None
    if not isinstance(data, Data):
        raise ValueError(f"{path} holds a {type(data).__name__}; save a PyG Data with torch.save(data, FILE).")
    return data


def _shard(options: argparse.Namespace) -> int:
    from advdiff.distributed import partition, partition_stream

    if options.file.is_dir():
        if options.method == "metis":
            raise ValueError("a folder is divided as it is read, by --method range; metis needs a file.")
        summary = partition_stream(options.file, options.parts, options.out)
    else:
        summary = partition(_load(options.file), options.parts, options.out, options.method or "metis")
    print(
        f"{summary.num_nodes} nodes and {summary.num_edges} edges in {summary.parts} parts by {summary.method}: "
        f"{options.out}"
    )
    return 0


def _train(options: argparse.Namespace) -> int:
    from advdiff.distributed.training import Whole, save_weights, train
    from advdiff.experiments.machine import choose_device

    settings = settings_of(options)
    data, device = _load(options.file), choose_device(options.device)
    model = train(
        Whole(data, settings, device),
        settings,
        report=lambda epoch: print(epoch, flush=True),
        checkpoint=options.checkpoint,
        resume=options.resume,
    )
    if options.save is not None:
        save_weights(options.save, model)
    return 0
