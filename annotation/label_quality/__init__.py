"""Can the labels be trusted: audits, agreement, people, cost, and what needs a decision (MECHANICS M4, UI).

What pages ask for: `trust`, `people`, `agreement_over_time`, `decisions`, `costs`. The records are in `records`.
"""

from annotation.label_quality.audits import audits
from annotation.label_quality.costs import costs
from annotation.label_quality.deciding import decisions
from annotation.label_quality.statistics import agreement_over_time, people, refresh, standing, trust

__all__ = ["agreement_over_time", "audits", "costs", "decisions", "people", "refresh", "standing", "trust"]
