"""Evidence in documents: sentences that support a label, written and measured by judges (Prism)."""
