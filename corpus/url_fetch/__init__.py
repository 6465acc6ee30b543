"""Pages that people name as sources of passages: fetched by a worker, from public addresses alone (docs/adr/0029)."""
