"""Label quality: audits of automatic labels with intervals, canaries, and which routes are too often wrong."""

from annotation.label_quality.audits import measure_audits
from annotation.label_quality.costs import campaign_costs
from annotation.label_quality.deciding import list_route_decisions
from annotation.label_quality.statistics import (
    agreement_over_time,
    cached_statistics,
    read_label_quality,
    read_people_agreement,
    refresh_statistics,
)

__all__ = [
    "agreement_over_time",
    "cached_statistics",
    "campaign_costs",
    "list_route_decisions",
    "measure_audits",
    "read_label_quality",
    "read_people_agreement",
    "refresh_statistics",
]
