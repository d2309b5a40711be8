"""From records to what a chapter shows: selections, comparisons, tables, and the paper's own numbers."""

from advdiff.results.findings import Findings, findings
from advdiff.results.tables import Table, table

__all__ = ["Findings", "Table", "findings", "table"]
