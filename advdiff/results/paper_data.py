"""The paper's tables about its data: statistics, growth of Arxiv, masses in HAM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statistics:
    """A row of Table 3 (``tbl-dataset``): smallest and largest number of nodes and edges, and the number of graphs."""

    nodes: tuple[int, int]
    edges: tuple[int, int]
    graphs: int
    split: str
    task: str
    metric: str


#: Table 3, ``tbl-dataset``, as printed.
TABLE_3: dict[str, Statistics] = {
    "Synthetic-h": Statistics((1000, 1000), (14064, 32066), 12, "SBM (homophily)", "node regression", "RMSE"),
    "Synthetic-d": Statistics((1000, 1000), (7785, 13912), 12, "SBM (density)", "node regression", "RMSE"),
    "Synthetic-b": Statistics((1000, 1000), (14073, 59936), 12, "SBM (block number)", "node regression", "RMSE"),
    "Twitch": Statistics((1912, 9498), (31299, 153138), 7, "geographic domain", "node classification", "ROC-AUC"),
    "Arxiv": Statistics((169343, 169343), (1166243, 1166243), 1, "publication time", "node classification", "accuracy"),
    "OGB-BACE": Statistics((10, 97), (10, 101), 1513, "molecular scaffold", "graph classification", "ROC-AUC"),
    "OGB-SIDER": Statistics((1, 492), (0, 505), 1427, "molecular scaffold", "graph classification", "ROC-AUC"),
    "DPPIN-nr": Statistics((143, 5003), (22, 25924), 12, "protein identification method", "node regression", "RMSE"),
    "DPPIN-er": Statistics((143, 5003), (22, 25924), 12, "protein identification method", "edge regression", "RMSE"),
    "DPPIN-lp": Statistics((143, 5003), (22, 25924), 12, "protein identification method", "link prediction", "ROC-AUC"),
    "HAM": Statistics((8, 25), (7, 29), 1987, "relative molecular mass", "edge classification", "accuracy"),
}

#: What is known to be inconsistent in Table 3.
TABLE_3_NOTES = (
    "The rows Synthetic-d and Synthetic-b are swapped: the formulas give 13,986 → 59,774 expected edges for the "
    "density shift and 13,986 → 7,805 for the block shift.",
    "The synthetic metric is RMSE here, and mean square error in the text and in the released code.",
    "DPPIN: the smallest snapshot in the range of the window has 14 edges, not 22.",
    "HAM: 1,987 annotations of 1,180 distinct molecules; the text says 1,206 molecules.",
    "OGB-BACE, OGB-SIDER and DPPIN-lp are listed, and no results are given.",
)

#: Table 4, ``tab:dataset-arxiv``: the growing citation network.
TABLE_4: dict[str, dict[str, float]] = {
    "train": {"target nodes": 41125, "nodes": 41125, "edges": 102316, "max degree": 275, "mean degree": 4.98},
    "valid": {"target nodes": 49816, "nodes": 90941, "edges": 374839, "max degree": 3036, "mean degree": 8.24},
    "2018": {"target nodes": 29799, "nodes": 120740, "edges": 622466, "max degree": 6251, "mean degree": 10.31},
    "2019": {"target nodes": 39711, "nodes": 160451, "edges": 1061197, "max degree": 12006, "mean degree": 13.23},
    "2020": {"target nodes": 8892, "nodes": 169343, "edges": 1166243, "max degree": 13161, "mean degree": 13.77},
}

#: Table 5 (in the source also labelled ``tab:dataset-arxiv``): relative molecular masses in HAM.
TABLE_5: dict[str, tuple[float, float]] = {
    "train": (108.18, 273.34),
    "valid": (273.34, 311.14),
    "test": (311.14, 762.94),
}
