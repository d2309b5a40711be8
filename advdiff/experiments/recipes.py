"""The experiments of the paper: what is trained on what, how, and how it is judged.

Settings are those of the authors' released code where the paper gives none (its search grid is in ``grid``). The quick
profile is for trying and for the live cells of notebooks; full is the paper's protocol.
"""

from __future__ import annotations

from advdiff.experiments.recipe import Budget, Option, Profile, Recipe

SYNTHETIC = Recipe(
    name="synthetic",
    dataset="synthetic",
    description="node regression under shifts of homophily, density and blocks (the paper's Figure 3)",
    models=(
        "advdifformer-s",
        "advdifformer-i",
        "advdifformer-e",
        "diff-linear",
        "diff-multilayer",
        "diff-time",
        "diff-nonlocal",
        "mlp",
    ),
    common={
        "hidden_channels": 8,
        "dropout": 0.0,
        "heads": 1,
        "beta": 0.2,
        "theta": 1.0,
        "order": 1,
    },
    # The paper gives no grid for the synthetic study; this is the part of its other grids that applies.
    grid={
        "hidden_channels": (8, 16, 32),
        "learning_rate": (0.01, 0.001),
        "beta": (0.2, 0.5, 0.8, 1.0),
        "theta": (0.5, 1.0),
        "order": (1, 2, 4),
    },
    options={
        "shift": Option(
            ("homophily", "density", "block"), ("homophily", "density", "block", "none"), "what changes between graphs"
        ),
        "labels": Option("per_graph", ("per_graph", "shared"), "labels of each graph, or those of graph #1 for all"),
        "edges": Option("independent", ("independent", "common"), "drawn anew, or from the same random numbers"),
        "num_nodes": Option(1000, (), "N"),
        "graph_share": Option(0.5, (), "weight of the graph in the labels, 0 to 1"),
    },
    seeded_data=True,
    quick=Profile(Budget(epochs=100, learning_rate=1e-2), {"num_nodes": 300}, seeds=2),
    full=Profile(Budget(epochs=500, learning_rate=1e-2), {"num_nodes": 1000}, seeds=5),
    columns=("#1", "#2", "#3", "#12", "test mean", "test worst"),
)

SMALL_GRAPHS = Recipe(
    name="small_graphs",
    dataset="small_graphs",
    description="graph regression on batches of small random graphs, to try and time every model; not in the paper",
    models=(
        *SYNTHETIC.models,
        *("gcn", "gat", "sgc", "gdc", "grand", "a-dgn", "cde", "graphtrans", "graphgps", "difformer"),
    ),
    common=SYNTHETIC.common,
    options={"num_graphs": Option(128, (), "graphs to train on")},
    seeded_data=True,
    quick=Profile(Budget(epochs=5, learning_rate=1e-2)),
    full=Profile(Budget(epochs=50, learning_rate=1e-2)),
    columns=("train", "valid", "test"),
)

TWELVE = (
    "mlp", "gcn", "gat", "sgc", "gdc", "grand", "a-dgn", "cde", "graphtrans", "graphgps", "difformer", "advdifformer-s",
)  # fmt: skip
_NETWORK_GRID: dict[str, tuple[object, ...]] = {
    "hidden_channels": (32, 64, 128),
    "learning_rate": (0.0001, 0.001),
    "heads": (1, 2, 4),
    "beta": (0.2, 0.5, 0.8, 1.0),
    "order": (1, 2, 4),
}
_MOLECULE_GRID: dict[str, tuple[object, ...]] = {
    "hidden_channels": (256,),
    "learning_rate": (0.01, 0.005, 0.001, 0.0005, 0.0001, 0.00005),
    "dropout": (0.0, 0.1, 0.3, 0.5),
    "heads": (1, 2, 4),
    "beta": (0.5, 0.75, 1.0),
    "theta": (0.5, 1.0),
    "order": (1, 2, 3, 4),
}

TWITCH = Recipe(
    name="twitch",
    dataset="twitch",
    description="node classification on seven regional networks (the paper's Tables 1 and 6)",
    models=(*TWELVE, "advdifformer-i"),
    common={"hidden_channels": 64, "heads": 2, "beta": 1.0, "order": 1, "theta": 1.5, "residual": True},
    # Three to thirteen times as slow as AdvDIFFormer-s: the larger learning rate of the paper's grid, and fewer epochs.
    budgets={name: {"learning_rate": 1e-3, "epochs": 100} for name in ("gdc", "grand", "cde", "graphtrans")},
    grid=_NETWORK_GRID,
    quick=Profile(Budget(epochs=30, learning_rate=1e-3)),
    full=Profile(Budget(epochs=500, learning_rate=1e-4), seeds=5),
    columns=("DE", "ENGB", "ES", "FR", "PTBR", "RU", "TW", "test mean"),
)

ARXIV = Recipe(
    name="arxiv",
    dataset="arxiv",
    description="node classification on a citation network that grows over the years (the paper's Tables 1 and 7)",
    models=(*TWELVE, "advdifformer-i"),
    common={
        "hidden_channels": 128,
        "heads": 2,
        "beta": 0.8,
        "order": 1,
        "theta": 1.5,
        "batch_norm": True,
        "residual": True,
    },
    # What these make once of each graph would take hours at 169,343 nodes.
    settings={"gdc": {"prune": 1e-3}, "graphgps": {"walk_length": 0}},
    grid=_NETWORK_GRID,
    options={"features": Option("ogb", ("ogb", "text"), "OGB's features, or the stand-in made from texts")},
    quick=Profile(Budget(epochs=5, learning_rate=1e-2)),
    full=Profile(Budget(epochs=500, learning_rate=1e-3), seeds=5),
    columns=("train", "valid", "2018", "2019", "2020"),
)

ARXIV_WHOLE = Recipe(
    name="arxiv_whole",
    dataset="arxiv",
    description="training on all 169,343 papers at once, which the paper's inverse variant could not; not its task",
    models=("advdifformer-s", "advdifformer-i"),
    common=ARXIV.common,
    options={**ARXIV.options, "network": Option("whole", ("whole",), "the network of 2020 in every environment")},
    quick=Profile(Budget(epochs=1, learning_rate=1e-2)),
    full=Profile(Budget(epochs=30, learning_rate=5e-3, evaluate_every=10), seeds=3),
    columns=ARXIV.columns,
)

DPPIN = Recipe(
    name="dppin",
    dataset="dppin",
    description="node and edge regression on twelve dynamic protein networks (the paper's Tables 2 and 8)",
    models=("mlp", "gcn", "gat", "sgc", "graphtrans", "graphgps", "difformer", "advdifformer-i", "advdifformer-s"),
    common={"hidden_channels": 64, "heads": 2, "beta": 0.5, "order": 1, "theta": 1.0, "residual": True},
    grid={
        "hidden_channels": (32, 64),
        "learning_rate": (0.01, 0.001, 0.0001),
        "heads": (1, 2, 4),
        "beta": (0.3, 0.5, 0.8, 1.0),
        "theta": (0.5, 1.0),
        "order": (1, 2, 3, 4),
    },
    options={
        "task": Option(("node", "edge"), ("node", "edge", "link"), "gene expression, edge weight, or link"),
        "split": Option("paper", ("paper", "code"), "6/1/5 networks, or the released code's 4/1/7"),
        "graph": Option("current", ("current", "previous"), "edges of the stamp asked for, or of the one before"),
        "snapshots": Option("all", ("all", "code"), "26 of each network, or the two of the released code"),
    },
    quick=Profile(Budget(epochs=3, learning_rate=1e-3, batch_size=4)),
    full=Profile(Budget(epochs=1000, learning_rate=1e-3, batch_size=26), seeds=5),
)

HAM = Recipe(
    name="ham",
    dataset="ham",
    description="which bonds of a molecule are cut, trained on light molecules and tested on heavy ones (Figure 4)",
    models=("gcn", "gat", "difformer", "graphgps", "advdifformer-s"),
    # The released code normalises every layer; without that, five layers with K = 4 and β = 1 grow too large to train.
    common={
        "hidden_channels": 256,
        "num_layers": 5,
        "heads": 2,
        "beta": 1.0,
        "order": 4,
        "dropout": 0.1,
        "batch_norm": True,
        "residual": True,
    },
    # Five layers of this model take as long as all the others together; two are its usual number here.
    settings={"graphgps": {"num_layers": 2}},
    grid=_MOLECULE_GRID,
    quick=Profile(Budget(epochs=2, learning_rate=1e-3, batch_size=256)),
    full=Profile(Budget(epochs=200, learning_rate=5e-5, batch_size=256), seeds=5),
    columns=("train", "valid", "test"),
)


def _ogb(name: str, title: str) -> Recipe:
    return Recipe(
        name=name,
        dataset=name,
        description=f"{title}, split by scaffold; the paper lists the data set and gives no numbers",
        models=("gcn", "gat", "difformer", "graphgps", "advdifformer-s", "advdifformer-i"),
        common={"hidden_channels": 256, "heads": 1, "beta": 0.5, "theta": 1.0, "order": 2, "dropout": 0.1},
        grid=_MOLECULE_GRID,
        quick=Profile(Budget(epochs=2, learning_rate=1e-3, batch_size=64)),
        full=Profile(Budget(epochs=100, learning_rate=5e-4, batch_size=64), seeds=5),
        columns=("train", "valid", "test"),
    )


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        SYNTHETIC,
        SMALL_GRAPHS,
        TWITCH,
        ARXIV,
        ARXIV_WHOLE,
        DPPIN,
        HAM,
        _ogb("molbace", "inhibitors of β-secretase"),
        _ogb("molsider", "27 kinds of side effects of drugs"),
    )
}


def find(experiment: str) -> Recipe:
    """The recipe of that name."""
    from advdiff.checks import check_choice  # needs torch, which a look at the recipes does not

    check_choice("experiment", experiment, RECIPES)
    return RECIPES[experiment]
