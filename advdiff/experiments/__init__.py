"""From a name to a recorded run: recipes, plans, training, searches, records.

``fit(model, data)`` trains one model, ``run("synthetic", model="advdifformer-s", seeds=5)`` models of an experiment,
``tune`` searches settings on validation data, and ``table("synthetic")`` prints measured beside reported numbers.
"""

from typing import TYPE_CHECKING

from advdiff.lazy import attach

if TYPE_CHECKING:
    from advdiff.experiments.fitting import Fitted, fit, load_weights
    from advdiff.experiments.recipe import Budget, Recipe
    from advdiff.experiments.recipes import RECIPES
    from advdiff.experiments.records import DamagedRecordWarning, Record, read
    from advdiff.experiments.search import Tuned, tune
    from advdiff.experiments.sweep import run
    from advdiff.experiments.workers import SweepError
    from advdiff.results.tables import Table, table

__all__ = [
    "RECIPES",
    "Budget",
    "DamagedRecordWarning",
    "Fitted",
    "Recipe",
    "Record",
    "SweepError",
    "Table",
    "Tuned",
    "fit",
    "load_weights",
    "read",
    "run",
    "table",
    "tune",
]
#: ``table`` lives to the right of this room, in :mod:`advdiff.results`; it can be had from here, too.
__getattr__ = attach(
    __name__,
    {
        "RECIPES": "advdiff.experiments.recipes",
        "Budget": "advdiff.experiments.recipe",
        "DamagedRecordWarning": "advdiff.experiments.records",
        "Fitted": "advdiff.experiments.fitting",
        "Recipe": "advdiff.experiments.recipe",
        "Record": "advdiff.experiments.records",
        "SweepError": "advdiff.experiments.workers",
        "Table": "advdiff.results.tables",
        "Tuned": "advdiff.experiments.search",
        "fit": "advdiff.experiments.fitting",
        "load_weights": "advdiff.experiments.fitting",
        "read": "advdiff.experiments.records",
        "run": "advdiff.experiments.sweep",
        "table": "advdiff.results.tables",
        "tune": "advdiff.experiments.search",
    },
)
