"""`compare_by_judges NAME --set N --judges A,B`: ask judges which of two documents is better."""

from typing import Any

from annotation.models.judged_comparisons import ComparisonJudging
from annotation.work.comparing.by_judges.judging import COMPARISON_JUDGINGS
from annotation.work.comparing.by_judges.selectors import describe_judging
from judges.management.job_command import JobCommand


class Command(JobCommand):
    name = "compare_by_judges"
    kind = COMPARISON_JUDGINGS
    help = (
        "Ask each judge about both orders of the documents of each comparison. Running the command again continues "
        "where it stopped, and repeats no call."
    )

    def summarise(self, job: ComparisonJudging) -> tuple[str, dict[str, Any]]:
        """Return a line for each judge, and the document."""
        document = describe_judging(job)
        lines = [f"{document['done']:,} of {document['total']:,} compared; {document['calls']:,} calls"]
        for row in document["judges"]:
            line = f"{row['judge']}: {row['answered']:,} preferences, {sum(row['unanswered'].values()):,} without one"
            for name, words in (("flips", "changed with the order"), ("agreement", "as most people")):
                if (figures := row[name])["value"] is not None:
                    line += f", {figures['value']:.1%} ({figures['low']:.1%} to {figures['high']:.1%}) {words}"
            lines.append(line)
        return "\n".join(lines), document
