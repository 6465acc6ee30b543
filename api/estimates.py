"""Estimates of calls to models, as operations return them."""

from typing import Any

from ninja import Field, Schema

from judges.campaigns.estimates import Estimate


class JobEstimateOut(Schema):
    """Expected calls of a job to models, and their cost. `cost` null: no known price."""

    calls: float
    calls_most: float
    cost: float | None = Field(description="USD.")
    cost_most: float | None


def show_estimate(estimate: Estimate | None) -> dict[str, Any]:
    """Return an estimate as JobEstimateOut; None: no calls are needed."""
    return {
        "calls": estimate.calls.expected if estimate else 0.0,
        "calls_most": estimate.calls.upper if estimate else 0.0,
        # No calls cost 0; null means that the price is unknown.
        "cost": estimate.cost.expected if estimate and estimate.cost else None if estimate else 0.0,
        "cost_most": estimate.cost.upper if estimate and estimate.cost else None if estimate else 0.0,
    }
