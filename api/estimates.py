"""Estimates of what models would be asked, as operations answer with them."""

from typing import Any

from ninja import Field, Schema

from judges.campaigns.estimates import Estimate


class JobEstimateOut(Schema):
    """Expected calls of a job to models, and their cost. `cost` null: no known price."""

    calls: float
    calls_most: float
    cost: float | None = Field(description="USD.")
    cost_most: float | None


def show_estimate(found: Estimate | None) -> dict[str, Any]:
    """Return an estimate as JobEstimateOut has it; None: nothing is asked."""
    return {
        "calls": found.calls.expected if found else 0.0,
        "calls_most": found.calls.upper if found else 0.0,
        # Where nothing is asked it costs 0; null is a price that nobody knows.
        "cost": found.cost.expected if found and found.cost else None if found else 0.0,
        "cost_most": found.cost.upper if found and found.cost else None if found else 0.0,
    }
