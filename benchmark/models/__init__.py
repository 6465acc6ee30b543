"""Runs of a collection, versions of its qrels, and what is made from them."""

from benchmark.models.agents import AgentJob, AgentSample, AnswerAssessment, ReferenceAnswer, Trace
from benchmark.models.answers import AnswerEvaluation, GeneratedAnswer
from benchmark.models.gates import Gate
from benchmark.models.hole_filling import Filling
from benchmark.models.qrels import Qrels, QrelsRow
from benchmark.models.reference_study import ReferenceStudy, StudyAnswer, StudyRating, StudyWithdrawal
from benchmark.models.report import Report, ReportValues
from benchmark.models.runs import RUN_NAME, Ranking, Run
from benchmark.models.search_endpoints import SearchEndpoint
from benchmark.models.suites import Suite, SuiteMember
from benchmark.models.synthesis import Synthesis, SyntheticBundle

__all__ = [
    "RUN_NAME", "AgentJob", "AgentSample", "AnswerAssessment", "AnswerEvaluation", "Filling", "Gate",
    "GeneratedAnswer", "Qrels", "QrelsRow", "Ranking", "ReferenceAnswer", "ReferenceStudy", "Report", "ReportValues",
    "Run", "SearchEndpoint", "StudyAnswer", "StudyRating", "StudyWithdrawal", "Suite", "SuiteMember", "Synthesis",
    "SyntheticBundle", "Trace",
]  # fmt: skip
