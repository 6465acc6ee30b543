"""Evidence in documents: which sentences support a label, written and measured by judges (Prism)."""
