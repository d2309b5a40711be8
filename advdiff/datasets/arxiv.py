"""ogbn-arxiv: a citation network that grows over the years (the paper's Tables 1, 4 and 7).

A model is trained on the papers up to 2014 and the citations among them, chosen on those of 2015 to 2017 and tested on
those of 2018, 2019 and 2020, each time in the network of all papers up to that year. The paper's counts of edges
(102,316; 374,839; 622,466; 1,061,197; 1,166,243) are citations, which have a direction; here an edge joins two papers
whichever cites the other, so that V is symmetric: 99,401; 369,033; 615,415; 1,052,875; 1,157,799 pairs.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.datasets.base import Dataset
from advdiff.datasets.checksums import CONTENT
from advdiff.datasets.files import (
    DamagedDataError,
    MissingDataError,
    Source,
    damaged,
    is_made_up,
    read_arrays,
    read_table,
)
from advdiff.datasets.parsed_cache import checksum, remember

if TYPE_CHECKING:
    from torch_geometric.data import Data

TITLE = "ogbn-arxiv: citations among papers in computer science, 1971 to 2020"
LICENCE = "ODC-BY (the stand-in features derive from TAPE, MIT)"
CITATION = "Hu et al., Open Graph Benchmark, NeurIPS 2020; stand-in features: He et al., TAPE, ICLR 2024"

FEATURES = ("ogb", "text")
EDGES = ("undirected", "directed")
NETWORKS = ("growing", "whole")
#: Environment → first and last year of the papers to be classified; the graph holds all papers up to the last.
YEARS = {"train": (0, 2014), "valid": (2015, 2017), "2018": (2018, 2018), "2019": (2019, 2019), "2020": (2020, 2020)}
NUM_CLASSES = 40
NUM_FEATURES = 128
METRIC = "accuracy"

_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
_ARCHIVE = "49f85c801589ecdcc52cfaca99693aaea7b8af16a9ac3f41dd85a5f3193fe276"
#: Of the citations, sorted: upstream has them in another order than the files that this book was made with.
_CITATIONS = "17a568aaeb414c6305b45b3768eca78b1d7247d9a35951a1d5c522340d4bdb9c"


def _raw(name: str, sha256: str | None = None, size: int | None = None) -> Source:
    path, member = f"ogbn_arxiv/raw/{name}.csv", f"arxiv/raw/{name}.csv.gz"
    return Source(path, _URL, sha256, size, member, archive_sha256=_ARCHIVE, dataset="arxiv")


def _known(name: str) -> Source:
    size, sha256 = CONTENT[f"ogbn_arxiv/raw/{name}.csv"]
    return _raw(name, sha256, size)


_EDGES = _raw("edge", size=CONTENT["ogbn_arxiv/raw/edge.csv"][0])
_GRAPH = (_EDGES, *(_known(name) for name in ("node-label", "node_year", "num-node-list", "num-edge-list")))
_OGB = _raw("node-feat")  # whose checksum is known as that of the archive only
_STANDIN = "ogbn_arxiv/standin/text_feat_128_int8.npz"
_TEXT = Source(_STANDIN, url="", sha256=CONTENT[_STANDIN][1], size=CONTENT[_STANDIN][0], dataset="arxiv")
SOURCES: tuple[Source, ...] = (*_GRAPH, _OGB, _TEXT)
_VERSION = 2


def load(features: str = "ogb", edges: str = "undirected", network: str = "growing") -> Dataset:
    """Five environments of one graph each: ``train``, ``valid`` and the years ``2018``, ``2019`` and ``2020``.

    A graph holds all papers up to the environment's last year, the oldest first, and ``mask`` marks those of its own
    years: only they are classified. So the nodes of one environment are the first nodes of the next, and all
    environments share one matrix of features. ``year`` and ``node`` [N] give a paper's year and its number in
    upstream's files.

    Args:
        features: ``"ogb"``, upstream's averaged word vectors, or ``"text"``: a stand-in of the same width, made from
            texts that a language model wrote about the papers. Results with it cannot be compared in absolute value
            with the paper's, and some label information may remain in the wording of those texts.
        edges: ``"undirected"``, or ``"directed"`` from the citing to the cited paper, as upstream has them.
        network: ``"growing"``, or ``"whole"``: the network of all 169,343 papers in every environment, so that only
            the papers to be classified differ. It is not the paper's task (the future is seen), but the largest graph.
    """
    check_choice("features", features, FEATURES)
    check_choice("edges", edges, EDGES)
    check_choice("network", network, NETWORKS)
    arrays = remember("arxiv", _GRAPH, _read_graph, {"part": "graph"}, _VERSION)
    labels, published, citations = arrays["labels"], arrays["published"], arrays["citations"]
    order = np.argsort(published, kind="stable")
    year = torch.from_numpy(published[order].astype(np.int64))
    y = torch.from_numpy(labels[order].astype(np.int64))
    x = _features(features, order)
    edge_index = _edge_index(citations, order, both_ways=edges == "undirected")

    graphs: dict[str, list[Data]] = {}
    for name, (first, last) in YEARS.items():
        size = int(torch.searchsorted(year, last, right=True))
        graphs[name] = [_graph(x, y, year, torch.from_numpy(order), edge_index, size, first)]
    if network == "whole":
        graphs = {name: [_masked(graphs["2020"][0], *years)] for name, years in YEARS.items()}
    names = tuple(graphs)
    options: dict[str, object] = {"features": features, "edges": edges, "network": network}
    return Dataset("arxiv", options, "node", METRIC, x.size(1), NUM_CLASSES, graphs, names[:1], names[1:2], names[2:])


def _graph(x: Tensor, y: Tensor, year: Tensor, node: Tensor, edge_index: Tensor, size: int, first: int) -> Data:
    """The papers 0 … size − 1 and the edges among them."""
    from torch_geometric.data import Data

    inside = (edge_index < size).all(dim=0)
    return Data(
        x=x[:size],
        edge_index=edge_index[:, inside],
        y=y[:size],
        mask=year[:size] >= first,
        year=year[:size],
        node=node[:size],
    )


def _masked(graph: Data, first: int, last: int) -> Data:
    """The same graph, its tensors shared, with the papers of these years marked."""
    masked = copy(graph)
    masked.mask = (graph.year >= first) & (graph.year <= last)
    return masked


def _edge_index(citations: np.ndarray, order: np.ndarray, both_ways: bool) -> Tensor:
    """[2, E] in the new numbering, sorted; both ways, mutual citations become one pair."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    source, target = place[citations[:, 0]], place[citations[:, 1]]
    keys = source * len(order) + target
    if both_ways:
        keys = np.concatenate([keys, target * len(order) + source])
    keys.sort()
    if both_ways:
        keys = keys[np.diff(keys, prepend=-1) > 0]
    return torch.from_numpy(np.stack(np.divmod(keys, len(order))))


def _features(kind: str, order: np.ndarray) -> Tensor:
    if kind == "ogb":
        try:
            stored = remember("arxiv", [_OGB], _read_ogb, {"part": "ogb"}, _VERSION)
        except MissingDataError as error:
            raise MissingDataError(
                f"{str(error).rstrip('.')}; or ask for the stand-in by name with features='text', "
                "whose results cannot be compared with the paper's."
            ) from error
        x = stored["x"]
    else:
        stored = remember("arxiv", [_TEXT], _read_text, {"part": "text"}, _VERSION)
        x = stored["q"] * stored["scale"]
    if x.shape != (len(order), NUM_FEATURES):
        path = (_OGB if kind == "ogb" else _TEXT).path
        raise DamagedDataError(f"{path} holds {x.shape} numbers instead of {(len(order), NUM_FEATURES)}.")
    return torch.from_numpy(x.astype(np.float32, copy=False)[order])


def _read_ogb(path: Path) -> dict[str, np.ndarray]:
    x = read_table(path, np.float32)
    if not np.isfinite(x).all():
        raise damaged(path, "a feature is not finite")
    return {"x": x}


def _read_text(path: Path) -> dict[str, np.ndarray]:
    stored = read_arrays(path)
    if not {"q", "scale"} <= set(stored):
        raise damaged(path, f"it holds {', '.join(stored)} instead of q and scale")
    return {"q": stored["q"], "scale": stored["scale"]}


def _read_graph(edges: Path, labels: Path, published: Path, num_nodes: Path, num_edges: Path) -> dict[str, np.ndarray]:
    nodes, count = (int(read_table(path).sum()) for path in (num_nodes, num_edges))
    columns = {path: read_table(path, np.int32) for path in (labels, published)}
    for path, column in columns.items():
        if column.shape != (nodes, 1):
            raise damaged(path, f"it has {len(column)} lines for {nodes} papers")
    pairs = read_table(edges, np.int32).reshape(-1, 2)
    if len(pairs) != count:
        raise damaged(edges, f"it has {len(pairs)} citations instead of {count}")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= nodes):
        raise damaged(edges, f"it names paper {pairs.max()}, and there are {nodes}")
    known, when = columns[labels][:, 0], columns[published][:, 0]
    if known.size and (known.min() < 0 or known.max() >= NUM_CLASSES):
        raise damaged(labels, f"it names class {known.max()}, and there are {NUM_CLASSES}")
    ordered = pairs[np.lexsort(pairs.T[::-1])]
    if not is_made_up(edges) and checksum({"citations": ordered.astype("<i4")}) != _CITATIONS:
        raise damaged(edges, "the citations are not upstream's")
    return {"labels": known.astype(np.uint8), "published": when.astype(np.int16), "citations": ordered}
