"""How far assessors agree: pure measures, and the report that pages and the command share (DESIGN 7)."""
