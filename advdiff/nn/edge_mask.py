"""Where the explainers of PyG hang the mask with which they weigh the edges."""

from __future__ import annotations

from torch_geometric.nn import MessagePassing

from advdiff.operators.velocity import Velocity


class EdgeMask(MessagePassing):
    """V with each edge weighed by an explainer's mask, while ``explain`` is set.

    PyG's explainers look for modules of type ``MessagePassing`` and weigh their messages; this is the part of a layer
    that they find. What an edge carries is weighed after the normalisation, as there: masking one edge does not
    strengthen the others.
    """

    def __init__(self) -> None:
        super().__init__(node_dim=0)

    def forward(self, velocity: Velocity) -> Velocity:
        if not velocity.reductions.is_whole:
            raise ValueError("this process holds a part of the graph; explain a prediction where all of it is at hand.")
        entries = self.explain_message(velocity.entries, velocity.num_nodes)
        return Velocity.build(
            velocity.edge_index,
            entries,
            entries.detach(),
            velocity.num_nodes,
            velocity.kind,
            velocity.dtype,
            velocity.skew,
        )
