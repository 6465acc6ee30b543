"""Fixtures of judges' tests: the standing worker, and campaigns that nobody works on."""

from tests.engine_parts import _standing_worker, unattended, worker

__all__ = ["_standing_worker", "unattended", "worker"]
