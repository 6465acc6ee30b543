"""ERank: models that think, then grade from 0 to 10; trained on chains, then by rewards of ranks (ERank 3.2, 3.3)."""
