"""ERank: models that reason, then score from 0 to 10; trained on chains, then on ranking rewards (ERank 3.2, 3.3)."""
