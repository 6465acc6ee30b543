"""People: judging, adjudication, members and invitations."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from quorum_client._sync.resources import Resource
from quorum_client.answers import build_body
from quorum_client.models import (
    ConflictOut,
    ConflictsOut,
    InvitationOut,
    MemberIn,
    MemberOut,
    QueueOut,
    TaskOut,
)


class Tasks(Resource):
    """Your own queue, by the rules of the judging page. Needs a token with the scope judge."""

    def read(self) -> QueueOut:
        """Read the pair that you hold; nothing is claimed."""
        return self.transport.read(QueueOut, self.at("task"))

    def claim(self) -> QueueOut:
        """Claim the next pair, or renew the lease of the one that you hold."""
        return self.transport.post(QueueOut, self.at("task", "claim"))

    def judge(
        self,
        task: TaskOut,
        grade: int,
        *,
        comment: str = "",
        milliseconds: int | None = None,
        spans: Sequence[tuple[int, int]] = (),
    ) -> QueueOut:
        """Submit a judgment and claim the next pair. `spans`: evidence, as [start, end) in characters."""
        body = {
            "item": task.item,
            "token": task.token,
            "grade": grade,
            "comment": comment,
            "milliseconds": milliseconds,
            "spans": [list(span) for span in spans],
        }
        return self.transport.post(QueueOut, self.at("task", "judge"), body)

    def write(self, task: TaskOut, contribution: str, evidence: str, *, rating: int | None = None) -> QueueOut:
        """Write contribution and evidence of a pair that asks for texts; `rating`: of those that were found."""
        body = {"item": task.item, "token": task.token, "contribution": contribution, "evidence": evidence}
        return self.transport.post(QueueOut, self.at("task", "write"), {**body, "rating": rating})

    def skip(self, task: TaskOut, reason: str) -> QueueOut:
        """Give the pair back with a reason, and claim the next."""
        body = {"item": task.item, "token": task.token, "reason": reason}
        return self.transport.post(QueueOut, self.at("task", "skip"), body)

    def flag(self, task: TaskOut, note: str = "") -> QueueOut:
        """Hand the pair to the adjudicators, and claim the next."""
        body = {"item": task.item, "token": task.token, "note": note}
        return self.transport.post(QueueOut, self.at("task", "flag"), body)

    def undo(self, item: int) -> QueueOut:
        """Take a decision back: its pair is held again."""
        return self.transport.post(QueueOut, self.at("task", "undo"), {"item": item})


class Conflicts(Resource):
    """Conflicts between annotators, for adjudicators. Needs a token with the scope judge."""

    def read(self, *, leave: int | None = None) -> ConflictsOut:
        """Read a conflict that waits; `leave`: the item of one that is left for later."""
        params = {} if leave is None else {"leave": leave}
        return self.transport.read(ConflictsOut, self.at("conflict"), params)

    def resolve(
        self, conflict: ConflictOut, grade: int, *, comment: str = "", milliseconds: int | None = None
    ) -> ConflictsOut:
        """Resolve a conflict; the next one comes with the answer."""
        body = {
            "item": conflict.item,
            "shown": conflict.shown,
            "grade": grade,
            "comment": comment,
            "milliseconds": milliseconds,
        }
        return self.transport.post(ConflictsOut, self.at("conflict", "resolve"), body)

    def undo(self, item: int) -> ConflictsOut:
        """Take your own decision back."""
        return self.transport.post(ConflictsOut, self.at("conflict", "undo"), {"item": item})


class Members(Resource):
    """Members of the collection."""

    def list(self) -> Iterator[MemberOut]:
        """List the members, those who left included."""
        return self.transport.iterate(MemberOut, self.at("members"))

    def read(self, number: int) -> MemberOut:
        """Read one member."""
        return self.transport.read(MemberOut, self.at("members", number))

    def change(
        self, number: int, asked: MemberIn | None = None, *, if_match: MemberOut | None = None, **fields: Any
    ) -> MemberOut:
        """Change `role`, `active`, `expert` or `paused` (with a `note`)."""
        body = build_body(MemberIn, asked, fields)
        return self.transport.change(MemberOut, self.at("members", number), body, if_match)

    def admit(self, number: int, *, retake: bool = False) -> MemberOut:
        """Let a member work without passing the qualification test, or take the next one."""
        path = self.at("members", number, "retake" if retake else "pass")
        return self.transport.post(MemberOut, path)

    def join(self) -> MemberOut:
        """Become a member as an owner of the site."""
        return self.transport.post(MemberOut, self.at("members", "join"))

    def remove(self, number: int, *, if_match: MemberOut | None = None) -> None:
        """End a membership; the judgments stay."""
        self.transport.delete(self.at("members", number), if_match)


class Invitations(Resource):
    """Open invitations."""

    def list(self) -> Iterator[InvitationOut]:
        """List the open invitations with their links."""
        return self.transport.iterate(InvitationOut, self.at("invitations"))

    def create(self, people: Sequence[str], role: str = "annotator", days: int = 14) -> Sequence[InvitationOut]:
        """Invite people by name or address: a link for each, which goes by mail to addresses where the site mails."""
        body = {"people": [*people], "role": role, "days": days}
        return self.transport.post(tuple[InvitationOut, ...], self.at("invitations"), body)

    def create_link(self, last_day: date, *, limit: int = 20, role: str = "annotator", note: str = "") -> InvitationOut:
        """Make a link by which several people join."""
        body = {"last_day": last_day.isoformat(), "limit": limit, "role": role, "note": note}
        return self.transport.post(InvitationOut, self.at("invitations", "link"), body)

    def read(self, number: int) -> InvitationOut:
        """Read an open invitation."""
        return self.transport.read(InvitationOut, self.at("invitations", number))

    def revoke(self, number: int, *, if_match: InvitationOut | None = None) -> None:
        """Withdraw an invitation."""
        self.transport.delete(self.at("invitations", number), if_match)
