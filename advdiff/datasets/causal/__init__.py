"""The causal model of the paper's Section 3.1, from which the synthetic data are drawn.

Latents and an environment make a graph (:mod:`~advdiff.datasets.causal.block_model`); latents alone make the features,
latents and graph the labels (:mod:`~advdiff.datasets.causal.mechanism`).
"""
