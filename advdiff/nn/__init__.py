"""Layers and models."""

from advdiff.nn.advdifformer import AdvDIFFormer
from advdiff.nn.conv import AdvDiffConv

__all__ = ["AdvDIFFormer", "AdvDiffConv"]
