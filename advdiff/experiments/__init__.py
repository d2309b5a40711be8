"""Train the paper's experiments, record what happened, and set it beside what the paper reports.

``run("synthetic", model="advdifformer-s", seeds=5)`` trains, ``tune`` searches the paper's grid on validation data, and
``table("synthetic")`` prints measured beside reported numbers.
"""

from advdiff.experiments.recipe import Recipe
from advdiff.experiments.recipes import RECIPES
from advdiff.experiments.records import DamagedRecordWarning, Record, read
from advdiff.experiments.run import run
from advdiff.experiments.sweep import SweepError
from advdiff.experiments.tables import Table, table
from advdiff.experiments.tune import Tuned, tune

__all__ = [
    "RECIPES",
    "DamagedRecordWarning",
    "Recipe",
    "Record",
    "SweepError",
    "Table",
    "Tuned",
    "read",
    "run",
    "table",
    "tune",
]
