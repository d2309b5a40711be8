"""The files of a partition: one for each rank, and ``shards.json``, which is written last and speaks for all."""

from __future__ import annotations

import json
import os
import pickle
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from advdiff.atomic import replacing

#: What each node, and what each edge, may carry along, under PyG's names.
OF_NODES = ("x", "y", "train_mask", "val_mask", "test_mask")
OF_EDGES = ("edge_weight", "edge_attr")
FORMAT = 1


@dataclass(frozen=True)
class Summary:
    """What all ranks of a partition know of it.

    Attributes:
        parts: number P of ranks.
        method: ``"metis"``, ``"range"`` or ``"given"``.
        num_nodes: N of the whole graph.
        num_edges: E of the whole graph.
        channels: columns of x, 0 without one.
        classes: 1 + the largest label where y holds class numbers, else 0.
        name: differs from partition to partition, so that files of two cannot be mixed.
    """

    parts: int
    method: str
    num_nodes: int
    num_edges: int
    channels: int
    classes: int
    name: str
    format: int = FORMAT


def new_name() -> str:
    """A name that no other partition has."""
    return uuid.uuid4().hex


def path_of(directory: Path, rank: int) -> Path:
    """The file of one rank."""
    return directory / f"part-{rank:05d}.pt"


def write_part(directory: Path, rank: int, name: str, tensors: dict[str, Tensor]) -> None:
    """The file of one rank, whole or not at all."""
    with replacing(path_of(directory, rank)) as file:
        torch.save({"name": name, "rank": rank, **tensors}, file)


def begin(directory: Path) -> None:
    """A folder whose old summary is gone before the first new part is written, so that no one reads half of each."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "shards.json").unlink(missing_ok=True)


def write_summary(directory: Path, summary: Summary) -> None:
    """``shards.json``, with which the partition is finished."""
    with replacing(directory / "shards.json") as file:
        file.write((json.dumps(asdict(summary), indent=1) + "\n").encode())


def read_summary(directory: str | os.PathLike[str]) -> Summary:
    """What ``shards.json`` of a folder says."""
    path = Path(directory) / "shards.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        summary = Summary(**found)
    except FileNotFoundError:
        raise ValueError(
            f"{directory} holds no finished partition (shards.json is missing): advdiff shard FILE --parts P --out DIR."
        ) from None
    except (ValueError, TypeError):
        raise ValueError(f"{path} is damaged; make the partition anew with advdiff shard.") from None
    if summary.format != FORMAT:
        raise ValueError(
            f"{path} has format {summary.format}, not {FORMAT}; make the partition anew with advdiff shard."
        )
    return summary


def read_part(directory: str | os.PathLike[str], rank: int, summary: Summary) -> dict[str, Any]:
    """The tensors of one rank."""
    path = path_of(Path(directory), rank)
    try:
        found: dict[str, Any] = torch.load(path, weights_only=True)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; make the partition anew with advdiff shard.") from None
    except (RuntimeError, EOFError, pickle.UnpicklingError):
        raise ValueError(f"{path} is damaged; make the partition anew with advdiff shard.") from None
    if found.get("name") != summary.name or found.get("rank") != rank:
        raise ValueError(f"{path} belongs to another partition than shards.json; make it anew with advdiff shard.")
    return found
