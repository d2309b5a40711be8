"""The paper's theory as small functions, and the ledger of its claims."""
