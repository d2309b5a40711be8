"""Layers and models."""

from advdiff.nn.advdifformer import AdvDIFFormer
from advdiff.nn.attention_maps import attention_maps
from advdiff.nn.conv import AdvDiffConv
from advdiff.nn.model import GraphModel
from advdiff.nn.registry import build, model_names, model_settings

__all__ = [
    "AdvDIFFormer",
    "AdvDiffConv",
    "GraphModel",
    "attention_maps",
    "build",
    "model_names",
    "model_settings",
]
