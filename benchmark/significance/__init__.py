"""Statistical significance: paired tests, corrections, and the compact letter display."""
