"""What models and metrics are called in prose, tables and figures."""

from __future__ import annotations

from advdiff.nn import registry

#: What a model is called.
MODELS: dict[str, str] = {name: model.title for name, model in registry.MODELS.items()}
#: What a metric is called, with its unit.
METRICS: dict[str, str] = {"accuracy": "accuracy (%)", "roc_auc": "ROC-AUC (%)", "mse": "MSE", "rmse": "RMSE"}
