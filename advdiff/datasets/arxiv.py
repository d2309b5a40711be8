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
from advdiff.datasets.files import (
    MissingDataError,
    Source,
    damaged,
    is_verbatim,
    locate,
    read_arrays,
    read_table,
    remember,
)

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
#: Environment → papers to be classified, papers, citations and pairs in upstream's files.
COUNTS = {
    "train": (41125, 41125, 102316, 99401),
    "valid": (49816, 90941, 374839, 369033),
    "2018": (29799, 120740, 622466, 615415),
    "2019": (39711, 160451, 1061197, 1052875),
    "2020": (8892, 169343, 1166243, 1157799),
}

_URL = "http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"


def _raw(name: str, sha256: str | None = None, size: int | None = None) -> Source:
    return Source(f"ogbn_arxiv/raw/{name}.csv", _URL, sha256, size, f"arxiv/raw/{name}.csv.gz", dataset="arxiv")


_EDGES = _raw("edge", size=14773350)
_LABELS = _raw("node-label", "7d16a4e399d6f89d2204735ca01e8e4667efae291ab154b56c2bd9110c47767c", 477779)
_PUBLISHED = _raw("node_year", "13452b823775699dad58fb0060bbf410e2606dfcf7ab5860676545e75c9a16c1", 846715)
_NUM_NODES = _raw("num-node-list", "2fdf1deb064205c1a857f3ec062ceaa7862ccedb347d11434ffb704332b41dd3", 7)
_NUM_EDGES = _raw("num-edge-list", "368cb26d23f5198608a892f80a11916eae771aa8373394a155dbd0dac776d553", 8)
_GRAPH = (_EDGES, _LABELS, _PUBLISHED, _NUM_NODES, _NUM_EDGES)
_OGB = _raw("node-feat")
_TEXT = Source(
    "ogbn_arxiv/standin/text_feat_128_int8.npz",
    url="",  # made for this book, not upstream's
    sha256="c1d5b2e85b49a12e14172f0942198f0dadc43e4a6cff7413070e1aadcc9d8f5b",
    size=11942978,
    dataset="arxiv",
)
SOURCES: tuple[Source, ...] = (*_GRAPH, _OGB, _TEXT)
_VERSION = 1


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
    paths = [locate(source) for source in _GRAPH]
    arrays = remember("arxiv", {"part": "graph"}, paths, lambda: _read_graph(*paths), _VERSION)
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
    _check_counts(graphs, edges, is_known=bool(arrays["verbatim"]))
    if network == "whole":
        graphs = {name: [_masked(graphs["2020"][0], *years)] for name, years in YEARS.items()}
    names = tuple(graphs)
    options: dict[str, object] = {"features": features, "edges": edges, "network": network}
    return Dataset(
        "arxiv", options, "node", "accuracy", x.size(1), NUM_CLASSES, graphs, names[:1], names[1:2], names[2:]
    )


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
            path = locate(_OGB)
        except MissingDataError as error:
            raise MissingDataError(
                f"{str(error).rstrip('.')}; or ask for the stand-in by name with features='text', "
                "whose results cannot be compared with the paper's."
            ) from error
        x = remember("arxiv", {"part": "ogb"}, [path], lambda: {"x": read_table(path, np.float32)}, _VERSION)["x"]
    else:
        path = locate(_TEXT)
        stored = read_arrays(path)
        if not {"q", "scale"} <= set(stored):
            raise damaged(path, f"it holds {', '.join(stored)} instead of q and scale")
        x = stored["q"] * stored["scale"]
    if x.shape != (len(order), NUM_FEATURES):
        raise damaged(path, f"it holds {x.shape} numbers instead of {(len(order), NUM_FEATURES)}")
    return torch.from_numpy(x.astype(np.float32, copy=False)[order])


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
    return {
        "labels": known.astype(np.uint8),
        "published": when.astype(np.int16),
        "citations": pairs,
        "verbatim": np.array(is_verbatim(_PUBLISHED, published)),
    }


def _check_counts(graphs: dict[str, list[Data]], edges: str, is_known: bool) -> None:
    """Upstream's own files must give the paper's counts; miniatures have their own."""
    for name, (targets, nodes, citations, pairs) in COUNTS.items() if is_known else ():
        (graph,) = graphs[name]
        expected = (targets, nodes, 2 * pairs if edges == "undirected" else citations)
        found = (int(graph.mask.sum()), graph.num_nodes, graph.num_edges)
        if found != expected:
            raise damaged(locate(_EDGES), f"target nodes, nodes and edges of {name} are {found} instead of {expected}")
