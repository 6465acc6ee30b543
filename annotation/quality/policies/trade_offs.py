"""The best trade-offs between accuracy and the work of people: the policies on the Pareto frontier."""

from collections.abc import Iterable
from typing import NamedTuple

from annotation.quality.policies.documents import PolicyDocument


class TradeOff(NamedTuple):
    """What a policy trades off: the balanced accuracy of its own labels, and the share of pairs that it escalates."""

    name: str
    accuracy: float
    escalated_share: float

    def is_superior_to(self, other: "TradeOff") -> bool:
        """Return whether this is at least as good in both figures, and better in one of them."""
        is_at_least_as_good = self.accuracy >= other.accuracy and self.escalated_share <= other.escalated_share
        is_equal = self.accuracy == other.accuracy and self.escalated_share == other.escalated_share
        return is_at_least_as_good and not is_equal


def find_best_trade_offs(policies: Iterable[PolicyDocument]) -> list[TradeOff]:
    """Return the trade-offs to which none of another measured policy is superior, in the order of the policies."""
    trade_offs: list[TradeOff] = []
    for policy in policies:
        accuracy = policy["own"]["balanced_accuracy"]["value"] if policy["available"] else None
        if accuracy is not None:
            trade_offs.append(TradeOff(name=policy["name"], accuracy=accuracy, escalated_share=policy["escalation"]))
    return [trade_off for trade_off in trade_offs if not any(other.is_superior_to(trade_off) for other in trade_offs)]
