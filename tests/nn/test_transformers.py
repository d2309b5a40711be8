"""The Transformers against their formulas: dense matrices in plain numpy, and the layers of torch and PyG."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINEConv, GPSConv
from torch_geometric.nn import Polynormer as PolynormerOfPyG
from torch_geometric.nn import SGFormer as SGFormerOfPyG
from torch_geometric.transforms import AddRandomWalkPE

from advdiff.nn import build
from advdiff.nn.baselines import columns, graphtrans
from advdiff.nn.baselines.difformer import Difformer
from advdiff.nn.baselines.gcn import GCN
from advdiff.nn.baselines.graphgps import GINE, GPSLayer, GraphGPS
from advdiff.nn.baselines.graphtrans import GraphTrans, SelfAttention, Transformer
from advdiff.nn.baselines.polynormer import GlobalLayer, Polynormer
from advdiff.nn.baselines.sgformer import SGFormer, SimpleAttention
from advdiff.nn.baselines.walks import return_probabilities
from advdiff.operators.segments import Segments
from tests.cases import BY_NAME, CASES, GraphCase, each, some
from tests.nn.dense import LARGE, array
from tests.nn.test_formulas import WIDTH, everywhere, heads_1_and_3, run, run_model, state, twin
from tests.reference import normalized, relative_error, unit

# -- GraphTrans ---------------------------------------------------------------------------------------------------


@heads_1_and_3
@each(CASES)
def test_self_attention_stays_within_graphs(case: GraphCase, heads: int) -> None:
    """softmax(QKᵀ/√d_h)V entry by entry, before the output, norms and feed-forward part."""
    block, z = SelfAttention(WIDTH, heads, 0.0).double(), state(case)
    block.output, block.forward_part, block.norms = (
        nn.Identity(),
        nn.Linear(WIDTH, WIDTH),
        nn.ModuleList([nn.Identity()] * 2),
    )
    block.forward_part = block.forward_part.double()
    query, key, value = np.split(array(block.project(z)), 3, axis=1)
    graph, size = case.batch or [0] * case.num_nodes, WIDTH // heads
    expected = array(z).copy()
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        for u in range(case.num_nodes):
            near = [v for v in range(case.num_nodes) if graph[v] == graph[u]]
            score = np.exp([query[u, part] @ key[v, part] / np.sqrt(size) for v in near])
            expected[u, part] += score / score.sum() @ value[near, part]
    out = block(z, Segments(case.num_nodes, case.batch_vector, z.device))
    expected = torch.tensor(expected)
    torch.testing.assert_close(out, expected + block.forward_part(expected))


def of_torch(ours: Transformer, heads: int) -> nn.Module:
    """torch's own layer with the parameters of our first one."""
    block, theirs = ours.blocks[0], nn.TransformerEncoderLayer(WIDTH, heads, 4 * WIDTH, 0.0, batch_first=True).double()
    pairs = [
        (theirs.linear1, block.forward_part[0]),
        (theirs.linear2, block.forward_part[3]),
        (theirs.norm1, block.norms[0]),
        (theirs.norm2, block.norms[1]),
        (theirs.self_attn.out_proj, block.output[0]),
    ]
    for to, source in pairs:
        to.load_state_dict(source.state_dict())
    theirs.self_attn.in_proj_weight = block.project.weight
    theirs.self_attn.in_proj_bias = block.project.bias
    return theirs


def test_transformer_is_that_of_torch() -> None:
    ours, z = Transformer(WIDTH, heads=2).double(), state(BY_NAME["undirected"])
    torch.testing.assert_close(ours(z), of_torch(ours, 2)(ours.start(z)[None])[0])


@some("undirected", "batch_with_one_node_graph", "batch_with_empty_graph", "batch_unsorted")
def test_a_graph_is_read_out_by_its_token(case: GraphCase) -> None:
    """The sum over a graph's nodes is what torch's layer gives the token that stands behind them."""
    ours, z = Transformer(WIDTH, heads=2, token=True).double(), state(case)
    theirs, out, graph = of_torch(ours, 2), ours(z, case.batch_vector), np.array(case.batch or [0] * case.num_nodes)
    for g in np.unique(graph):
        inside = torch.tensor(np.flatnonzero(graph == g))
        sequence = torch.cat([ours.start(z[inside]), ours.token])
        torch.testing.assert_close(out[inside].sum(0), theirs(sequence[None])[0, -1])


def test_graphtrans_is_convolutions_and_a_transformer() -> None:
    case = BY_NAME["weighted"]
    for task in ("node", "graph"):
        layer, z = GraphTrans(WIDTH, num_layers=3, task=task).double(), state(case)
        expected = z
        for convolution in layer.convolutions:
            expected = convolution(expected, case.edge_index, case.edge_weight).relu()
        torch.testing.assert_close(run(layer, case), layer.transformer(expected))
        assert (layer.transformer.token is None) == (task == "node")


def test_graphtrans_refuses_what_would_take_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphtrans, "MAX_NODES", 5)
    model = build("graphtrans", WIDTH, 8, 2).double()
    assert run_model(model, BY_NAME["batch_with_one_node_graph"]).size(0) == 9
    with pytest.raises(ValueError, match="graphtrans attends between all pairs of nodes, and a graph has 8; beyond 5"):
        run_model(model, BY_NAME["undirected"])


# -- GraphGPS -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [False, True])
@heads_1_and_3
def test_graphgps_layer_is_that_of_pyg_on_one_graph(heads: int, training: bool) -> None:
    case, ours = BY_NAME["undirected"], GPSLayer(WIDTH, GCN(WIDTH), heads).train(training)
    options = {"head_channels": WIDTH // heads}
    theirs = GPSConv(WIDTH, GCNConv(WIDTH, WIDTH), heads, attn_type="performer", attn_kwargs=options).train(training)
    torch.testing.assert_close(run(ours, case), twin(theirs, ours)(state(case), case.edge_index))


@some("undirected", "batch_with_one_node_graph")
@heads_1_and_3
def test_graphgps_layer_with_softmax_is_that_of_pyg(case: GraphCase, heads: int) -> None:
    batch = None if case.batch is None else torch.tensor(case.batch)
    ours = GPSLayer(WIDTH, GCN(WIDTH), heads, attention="softmax").eval()
    theirs = GPSConv(WIDTH, GCNConv(WIDTH, WIDTH), heads).eval()
    torch.testing.assert_close(run(ours, case), twin(theirs, ours)(state(case), case.edge_index, batch))


def test_softmax_attention_of_graphgps_takes_a_graph_without_nodes() -> None:
    """The second graph of three is empty; its softmax is over nothing, and must not spoil the gradients."""
    model = build("graphgps", WIDTH, 8, 2, attention="softmax", task="graph")
    x, batch = torch.randn(5, WIDTH), torch.tensor([0, 0, 0, 2, 2])
    out = model(x, torch.tensor([[0, 1, 3], [1, 2, 4]]), batch=batch)
    out.sum().backward()
    assert out.isfinite().all() and all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("edge_dim", [3, None])
@some("undirected", "directed", "isolated", "duplicates", "batch_with_one_node_graph")
def test_gine_is_that_of_pyg(case: GraphCase, edge_dim: int | None) -> None:
    ours = GINE(WIDTH, edge_dim).double()
    e = torch.randn(len(case.edges), edge_dim or WIDTH, dtype=torch.float64)
    theirs = GINEConv(ours.nn, edge_dim=edge_dim).double()
    if edge_dim is None:
        expected = theirs(state(case), case.edge_index, torch.zeros_like(e))
    else:
        theirs.lin = ours.lin
        expected = theirs(state(case), case.edge_index, e)
    torch.testing.assert_close(ours(state(case), case.edge_index, None, e if edge_dim else None), expected)


@pytest.mark.parametrize(("local", "edge_dim", "made"), [("auto", None, GCN), ("auto", 2, GINE), ("gcn", 2, GCN)])
def test_the_local_part_of_graphgps(local: str, edge_dim: int | None, made: type) -> None:
    assert all(isinstance(layer.conv, made) for layer in GraphGPS(WIDTH, local=local, edge_dim=edge_dim).layers)


@each([*CASES, LARGE])
def test_random_walk_encodings(case: GraphCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SIZE", 3 if case.num_nodes < 20 else 64)
    P = normalized(case.adjacency, "row")
    expected = np.stack([np.diag(np.linalg.matrix_power(P, k)) for k in range(1, 8)], 1)
    given = (case.edge_index, case.num_nodes, case.edge_weight, case.batch_vector)
    found = return_probabilities(*given, 7, torch.float64)
    np.testing.assert_allclose(array(found), expected, atol=1e-13)


def test_random_walk_encodings_are_those_of_pyg() -> None:
    from torch_geometric.data import Data

    data = AddRandomWalkPE(walk_length=5)(Data(edge_index=LARGE.edge_index, num_nodes=LARGE.num_nodes))
    ours = return_probabilities(LARGE.edge_index, LARGE.num_nodes, None, None, 5, torch.float32)
    torch.testing.assert_close(ours, data.random_walk_pe)


def test_walks_on_large_graphs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_WORK", 1000.0)
    case = BY_NAME["undirected"]
    with pytest.raises(ValueError, match=r"random-walk encodings of this graph take .* set walk_length=0"):
        run_model(build("graphgps", WIDTH, 8, 2).double(), case)
    assert run_model(build("graphgps", WIDTH, 8, 2, walk_length=0).double(), case).isfinite().all()


def test_encodings_tell_nodes_apart_that_message_passing_does_not() -> None:
    """Two triangles and a hexagon, all nodes alike: only the walks see the triangles."""
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), *((6 + u, 6 + (u + 1) % 6) for u in range(6))]
    edge_index = torch.tensor([*edges, *((t, s) for s, t in edges)]).T
    batch, x = torch.tensor([0] * 6 + [1] * 6), torch.ones(12, WIDTH)
    for length, apart in ((8, True), (0, False)):
        out = build("graphgps", WIDTH, 8, 2, walk_length=length).eval()(x, edge_index, batch=batch)
        assert torch.allclose(out[0], out[6], atol=1e-5) != apart


# -- DIFFormer ----------------------------------------------------------------------------------------------------


@heads_1_and_3
@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("use_graph", [True, False])
@each(CASES)
def test_difformer(case: GraphCase, heads: int, use_graph: bool, layer_norm: bool) -> None:
    layer = Difformer(WIDTH, heads, tau=0.3, use_graph=use_graph, layer_norm=layer_norm).double()
    z, spread = array(state(case)), 0.0
    A = normalized(case.adjacency, "symmetric")
    for h, C in enumerate(everywhere(layer, case, z)):
        P = 0.5 * (C + A) if use_graph else C
        spread += P @ z @ array(layer.value.weight)[h * WIDTH : (h + 1) * WIDTH].T / heads
    expected = 0.7 * z + 0.3 * spread
    if layer_norm:
        expected = (expected - expected.mean(1, keepdims=True)) / np.sqrt(expected.var(1, keepdims=True) + 1e-5)
    assert relative_error(run(layer, case), expected) <= 1e-12


# -- SGFormer and Polynormer --------------------------------------------------------------------------------------


@heads_1_and_3
@each(CASES)
def test_attention_of_sgformer(case: GraphCase, heads: int) -> None:
    layer, z = SimpleAttention(WIDTH, heads).double(), state(case)
    Q, K, V = (array(z) @ array(linear.weight).T for linear in (layer.query, layer.key, layer.value))
    graph = case.batch or [0] * case.num_nodes
    expected = np.zeros((case.num_nodes, WIDTH))
    for h in range(heads):
        b = slice(h * WIDTH, (h + 1) * WIDTH)
        for u in range(case.num_nodes):
            near = [w for w in range(case.num_nodes) if graph[w] == graph[u]]
            score = np.array([unit(Q[u, b]) @ unit(K[w, b]) for w in near])
            expected[u] += (len(near) * V[u, b] + score @ V[near, b]) / (len(near) + score.sum()) / heads
    out = layer(z, Segments(case.num_nodes, case.batch_vector, z.device))
    assert relative_error(out, expected) <= 1e-12


def copied(pairs: list[tuple[nn.Module, nn.Module]]) -> None:
    for theirs, ours in pairs:
        theirs.load_state_dict(ours.state_dict())


@heads_1_and_3
@pytest.mark.parametrize("training", [False, True])
def test_sgformer_is_that_of_pyg_on_one_graph(heads: int, training: bool) -> None:
    case, ours = BY_NAME["undirected"], SGFormer(WIDTH, 3, 2, heads, graph_weight=0.3).train(training)
    theirs = SGFormerOfPyG(WIDTH, WIDTH, WIDTH, 2, heads, 0.0, 3, 0.0, graph_weight=0.3).train(training)
    copied([(theirs.graph_conv.fcs[0], ours.starts[0]), (theirs.trans_conv.fcs[0], ours.starts[1])])
    copied(list(zip(theirs.graph_conv.convs, ours.convolutions, strict=True)))
    copied(list(zip(theirs.graph_conv.bns, ours.graph_norms, strict=True)))
    copied(list(zip(theirs.trans_conv.bns, ours.norms, strict=True)))
    for their, our in zip(theirs.trans_conv.attns, ours.attentions, strict=True):
        copied([(their.q, our.query), (their.k, our.key), (their.v, our.value)])
    theirs.fc = nn.Identity()
    # PyG mixes float32 ones into the attention.
    expected = theirs(state(case).float(), case.edge_index, torch.zeros(8, dtype=torch.int64))
    out = ours(state(case).float(), case.edge_index)
    torch.testing.assert_close(out.log_softmax(-1), expected, rtol=1e-4, atol=1e-5)


@heads_1_and_3
@each(CASES)
def test_global_layer_of_polynormer(case: GraphCase, heads: int) -> None:
    layer, z = GlobalLayer(WIDTH, heads).double(), state(case)
    nn.init.normal_(layer.mix)
    Q, K, V = (array(z) @ array(linear.weight).T for linear in (layer.query, layer.key, layer.value))
    Q, K = 1.0 / (1.0 + np.exp(-Q)), 1.0 / (1.0 + np.exp(-K))
    graph, size = np.array(case.batch or [0] * case.num_nodes), WIDTH // heads
    same, spread = (graph[:, None] == graph[None]).astype(float), np.zeros((case.num_nodes, WIDTH))
    for h in range(heads):
        b = slice(h * size, (h + 1) * size)
        C = same * (Q[:, b] @ K[:, b].T)
        spread[:, b] = C @ V[:, b] / (C.sum(1, keepdims=True) + 1e-6)
    mixed: Tensor = layer.norm(torch.tensor(spread)) * (layer.gate(z) + layer.mix.sigmoid())
    out = layer(z, Segments(case.num_nodes, case.batch_vector, z.device))
    torch.testing.assert_close(out, layer.output(mixed).relu())


@pytest.mark.parametrize("local", ["gat", "gcn"])
def test_polynormer_is_that_of_pyg_on_one_graph(local: str) -> None:
    case, ours = BY_NAME["undirected"], Polynormer(WIDTH, 3, 2, local=local).double()
    options = {"in_dropout": 0.0, "dropout": 0.0, "global_dropout": 0.0, "post_bn": False, "beta": 0.9}
    theirs = PolynormerOfPyG(WIDTH, WIDTH, WIDTH, 3, 2, local_attn=local == "gat", **options).double()
    theirs._global, theirs.pred_global = True, nn.Identity()
    for layer in (*ours.locals, *ours.globals):
        nn.init.constant_(layer.mix, float(np.log(9.0)))  # PyG's β is the number 0.9
    for number, layer in enumerate(ours.locals):
        copied([(theirs.h_lins[number], layer.gate), (theirs.lins[number], layer.skip)])
        copied([(theirs.lns[number], layer.norm), (theirs.local_convs[number], layer.local)])
    copied([(theirs.ln, ours.norm)])
    for their, our in zip(theirs.global_attn, ours.globals, strict=True):
        copied([(their.h_lins, our.gate), (their.q, our.query), (their.k, our.key), (their.v, our.value)])
        copied([(their.lns, our.norm), (their.lin_out, our.output)])
    expected = theirs(state(case), case.edge_index, torch.zeros(8, dtype=torch.int64))
    torch.testing.assert_close(run(ours, case).log_softmax(-1), expected)
