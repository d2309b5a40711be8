"""Batch normalisation over the nodes of a graph, be they all here or not."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from advdiff.nn.part import CURRENT_PART


class BatchNorm1d(nn.BatchNorm1d):
    r"""torch's batch normalisation; while a part stands for the graph, with the mean and variance over all its nodes.

    .. math::
        \mathbf y_u = \gamma\, \frac{\mathbf x_u - \boldsymbol\mu}{\sqrt{\boldsymbol\sigma^2 + \epsilon}} + \delta,
        \qquad \boldsymbol\mu = \frac1N \sum_u \mathbf x_u, \quad
        \boldsymbol\sigma^2 = \frac1N \sum_u (\mathbf x_u - \boldsymbol\mu)^2

    Parameters and buffers are torch's. (``torch.nn.SyncBatchNorm`` does this on GPUs alone.)

    Example:
        >>> import torch
        >>> BatchNorm1d(2)(torch.tensor([[0.0, 1.0], [2.0, 1.0]])).round(decimals=2).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
    """

    def forward(self, x: Tensor) -> Tensor:
        part = None if torch.compiler.is_compiling() else CURRENT_PART.get()  # recorded code is of a whole graph
        if part is None or not (self.training or self.running_mean is None):
            return super().forward(x)
        segments = part.segments
        mean = segments.mean(x)
        centred = x - mean
        variance = segments.mean(centred.square())
        if self.training and self.running_mean is not None and self.running_var is not None:
            self._remember(mean.detach()[0], variance.detach()[0], segments.all_nodes)
        scale = torch.rsqrt(variance + self.eps)
        if not self.affine:
            return centred * scale
        return torch.addcmul(self.bias, centred, scale * self.weight)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """The running mean and the running, unbiased variance, as torch keeps them."""
        assert self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        rate = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, rate)
        self.running_var.lerp_(variance * (count / max(count - 1, 1)), rate)
