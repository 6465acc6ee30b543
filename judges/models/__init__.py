"""Models of LLM judging: judges and panels, prompts, campaigns with their pairs, and every attempt."""

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from corpus.models import NUMBER, Collection, Item, Numbered, Pair, append_only
from corpus.rubric import Rubric
from judges.domain.audits import Route, route_of
from judges.records import TEXT_ROLES


class Priced(models.Model):
    """A team's prices of a model, in USD per million tokens; null: not set."""

    input_price = models.FloatField(null=True, help_text="USD per million tokens; null: the price table, else unknown.")
    output_price = models.FloatField(null=True)
    cached_input_price = models.FloatField(
        null=True, help_text="Of input that the provider took from its prompt cache; null: as other input."
    )
    written_input_price = models.FloatField(
        null=True, help_text="Of input that the provider wrote to its prompt cache; null: as other input."
    )
    reasoning_price = models.FloatField(
        null=True, help_text="Of reasoning that the model keeps apart from its answer; null: as other output."
    )
    batch_input_price = models.FloatField(null=True, help_text="In a batch; null: half the price.")
    batch_output_price = models.FloatField(null=True)
    batch_cached_input_price = models.FloatField(null=True)

    class Meta:
        abstract = True


class JudgeVersion(Priced):
    """A version of a configured model. A changed judge gets a new version; attempts keep theirs."""

    name = models.CharField(max_length=100)
    version = models.PositiveIntegerField(default=1)
    is_current = models.BooleanField(default=True)
    provider = models.CharField(max_length=40, help_text="Name of a preset (judges.presets).")
    model = models.CharField(max_length=200)
    base_url = models.CharField(max_length=500, blank=True)
    api_key_env = models.CharField(
        max_length=200, blank=True, help_text="Name of an environment variable, never the key."
    )
    parameters = models.JSONField(
        default=dict, help_text="temperature, top_p, max_output_tokens, timeout_s, logprobs, scale and others"
    )
    max_concurrency = models.PositiveIntegerField(null=True)
    requests_per_minute = models.PositiveIntegerField(null=True)
    tokens_per_minute = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="judge_version"),
            models.UniqueConstraint(fields=["name"], condition=Q(is_current=True), name="judge_current"),
        ]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class Panel(models.Model):
    """A named, ordered set of judges: two debaters or none, an odd number of voters or none, perhaps an adjudicator.

    Judges are named without a version. A voter that is named several times votes with several samples.
    """

    name = models.CharField(max_length=100, unique=True)
    debate = ArrayField(
        models.CharField(max_length=100), default=list, help_text="Who holds relevant, who not relevant."
    )
    ensemble = ArrayField(models.CharField(max_length=100), default=list)
    adjudicator = models.CharField(max_length=100, blank=True)
    majority = models.PositiveSmallIntegerField(default=3)
    early_stop = models.BooleanField(default=False)
    is_default = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="panel_default")
        ]

    def __str__(self) -> str:
        return self.name


class PromptVersion(models.Model):
    """A version of a prompt: the joined templates of its messages."""

    name = models.CharField(max_length=100)
    sha256 = models.CharField(max_length=64)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "sha256"], name="prompt_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.sha256[:8]}"


class Judging(models.Manager["Campaign"]):
    """Campaigns that label pairs, without those that write contribution and evidence, and cost centres."""

    def get_queryset(self) -> models.QuerySet["Campaign"]:
        return super().get_queryset().filter(kind=Campaign.Kind.JUDGING)


# Cost centres count from a million, so that the campaigns that people start are 1, 2, 3. By its name, the trigger is
# before `number`, which then finds a number and does nothing.
COST_CENTRE_NUMBER = pgtrigger.Trigger(
    name="cost_centre_number",
    when=pgtrigger.Before,
    operation=pgtrigger.Insert,
    condition=pgtrigger.Q(new__number=0, new__policy="retrieval"),
    func="""
INSERT INTO corpus_lastnumber AS last (collection_id, kind, number)
VALUES (NEW.collection_id, 'judges_campaign of costs', 1000001)
ON CONFLICT (collection_id, kind) DO UPDATE SET number = last.number + 1 RETURNING last.number INTO NEW.number;
RETURN NEW;
""",
)


class Campaign(Numbered):
    """The judging of a collection's pairs by a panel and a policy."""

    class Policy(models.TextChoices):
        DEBATE = "debate", gettext_lazy("debate")
        ENSEMBLE = "ensemble", gettext_lazy("ensemble")
        DEBATE_ENSEMBLE = "debate+ensemble", gettext_lazy("debate + ensemble")
        SINGLE = "single", gettext_lazy("single judge")
        # Calls no judge; three people judge every pair.
        HUMAN = "human", gettext_lazy("people only")
        # Continues from a judge's votes without workers: annotation.quality.policies.lara_live starts it.
        LARA = "lara", gettext_lazy("LARA")
        # Writes targets of relevant pairs, and no labels (judges.campaigns.evidence_campaigns).
        EVIDENCE = "evidence", gettext_lazy("contribution and evidence")
        # Cost centre for the calls of a run, without pairs and workers.
        RETRIEVAL = "retrieval", gettext_lazy("retrieval")

    class Kind(models.TextChoices):
        JUDGING = "judging", gettext_lazy("judging")
        WRITING = "writing", gettext_lazy("writing")
        COSTS = "costs", gettext_lazy("costs")  # A cost centre: the calls and the limits of a run.

    class State(models.TextChoices):
        RUNNING = "running", gettext_lazy("running")
        PAUSED = "paused", gettext_lazy("paused")
        FINISHED = "finished", gettext_lazy("finished")
        CANCELLED = "cancelled", gettext_lazy("cancelled")
        BUDGET = "budget", gettext_lazy("stopped by the budget")

    class Cap(models.TextChoices):
        BUDGET = "budget", gettext_lazy("the campaign's budget")
        CALLS = "max-calls", gettext_lazy("the campaign's maximum number of calls")
        COLLECTION = "collection", gettext_lazy("the collection's budget")
        DAY = "day", gettext_lazy("the collection's daily budget (UTC)")
        PRICE = "price", gettext_lazy("a judge without a known price (the collection has a budget)")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="campaigns")
    policy = models.CharField(max_length=20, choices=Policy)
    kind = models.GeneratedField(
        expression=models.Case(
            models.When(policy="evidence", then=models.Value("writing")),
            models.When(policy="retrieval", then=models.Value("costs")),
            default=models.Value("judging"),
        ),
        output_field=models.CharField(max_length=7, choices=Kind),
        db_persist=True,
    )
    state = models.CharField(max_length=9, choices=State, default=State.RUNNING)
    rounds = models.PositiveSmallIntegerField(default=2)
    panel = models.CharField(max_length=100)
    scope = models.CharField(
        max_length=40, blank=True, default="", db_default="", help_text="Which pairs: empty, every candidate."
    )
    debaters = ArrayField(models.BigIntegerField(), default=list, help_text="JudgeVersion ids: relevant, not relevant.")
    voters = ArrayField(models.BigIntegerField(), default=list, help_text="JudgeVersion ids, in order.")
    majority = models.PositiveSmallIntegerField(default=3)
    early_stop = models.BooleanField(default=False)
    protocol = models.JSONField(default=dict, help_text="judges.domain.protocol: stance order, filter and others.")
    failed_to_people = models.BooleanField(default=False)
    fresh = models.BooleanField(
        default=False, db_default=False, help_text="Asks everything anew, also what was answered before."
    )
    rubric = models.CharField(
        max_length=11, default="auto", db_default="auto", help_text="The collection's when it began."
    )
    instruction = models.TextField(blank=True, help_text="The collection's when it began.")
    seed = models.IntegerField(default=0)
    budget = models.FloatField(null=True, help_text="USD; null: none.")
    max_calls = models.BigIntegerField(null=True)
    stopped_by = models.CharField(
        max_length=10, choices=Cap, blank=True, db_default="", help_text="The cap that stopped it, in state budget."
    )
    paused_because = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The account that refused us and why, in state paused; while it runs, what its pairs wait for.",
    )
    starts = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text="How often it was started again: a refusal pauses the start in which its call was sent.",
    )
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    sampled_at = ArrayField(
        models.DateTimeField(),
        default=list,
        help_text="When it ended and its audit was filled up: pairs labelled in between are sampled apart.",
    )

    objects = models.Manager["Campaign"]()
    judging = Judging()

    class Meta:
        indexes = [models.Index(fields=["collection", "-id"], name="campaign_latest")]
        constraints = [
            models.CheckConstraint(name="campaign_rounds", condition=Q(rounds__gte=1, rounds__lte=5)),
            models.UniqueConstraint(fields=["collection", "number"], name="campaign_number"),
        ]
        triggers = [COST_CENTRE_NUMBER, NUMBER]

    def __str__(self) -> str:
        return f"campaign {self.number}"

    @property
    def full_name(self) -> str:
        """Name of the campaign with its collection, for lists of workers and log lines."""
        return f"campaign {self.number} of {self.collection.name}"

    @property
    def relevance(self) -> Rubric:
        """Definition of relevance for all pairs of the campaign."""
        return Rubric(self.rubric, self.instruction)

    def describe_route(self, route: Route) -> str:
        """Return how labels of the campaign were reached, in words: "Round 1 · votes 5-0 · relevant"."""
        return route.describe(len(self.voters), self.majority if self.early_stop else 0)


class Reservation(models.Model):
    """Money and calls that a worker process has reserved from a campaign's budget, for calls in flight and some ahead.

    A dead worker's row expires and is reclaimed.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="reservations")
    holder = models.CharField(max_length=64)
    usd = models.FloatField(default=0.0)
    calls = models.BigIntegerField(default=0)
    until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["campaign", "holder"], name="reservation_once")]

    def __str__(self) -> str:
        return f"{self.campaign_id} {self.holder}: {self.usd}"


class Work(models.Model):
    """A pair of a campaign, with its state, lease and outcome."""

    class State(models.TextChoices):
        PENDING = "pending", gettext_lazy("pending")
        RUNNING = "running", gettext_lazy("running")
        LABELLED = "labelled", gettext_lazy("labelled")
        ESCALATED = "escalated", gettext_lazy("escalated")
        FAILED = "failed", gettext_lazy("failed")

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="work")
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="work")
    state = models.CharField(max_length=9, choices=State, default=State.PENDING)
    fence = models.PositiveIntegerField(
        default=0, help_text="Goes up with every claim; a write with an older one is refused."
    )
    claims = models.PositiveSmallIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    label = models.SmallIntegerField(null=True, help_text="0 or 1: the policy's verdict.")
    reason = models.CharField(max_length=12, blank=True, help_text="Why it was escalated, or why it failed.")
    error = models.TextField(blank=True, help_text="The last error of a failed pair, one line.")
    agreed_in_round = models.PositiveSmallIntegerField(null=True)
    window = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Of a document judged in windows, the one that decided, from 1; else 0."
    )
    stratum = models.CharField(
        max_length=40, default="", db_default="", blank=True, help_text="The route to the label: judges.domain.audits."
    )
    attempt_base = models.PositiveSmallIntegerField(
        default=0, help_text="Goes up with retry-failed: new attempts count anew."
    )
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "work"
        constraints = [models.UniqueConstraint(fields=["campaign", "pair"], name="work_once")]
        indexes = [
            models.Index(fields=["campaign", "id"], name="work_pending", condition=Q(state="pending")),
            models.Index(fields=["campaign", "lease_until"], name="work_running", condition=Q(state="running")),
            models.Index(fields=["campaign", "state", "reason", "id"], name="work_state"),
        ]

    def __str__(self) -> str:
        return f"{self.campaign_id}/{self.pair_id}: {self.state}"

    @property
    def route_description(self) -> str:
        """Return how the label was reached, in words; "" without an automatic label."""
        return self.campaign.describe_route(route_of(self.stratum)) if self.stratum else ""


class JudgeCall(models.Model):
    """Columns of every stored model call, about a pair or not."""

    class Role(models.TextChoices):
        FOR = "for", gettext_lazy("for")
        AGAINST = "against", gettext_lazy("against")
        VOTE = "vote", gettext_lazy("vote")
        # One of a voter's several answers; the vote is a copy of the answer nearest their mean.
        GENERATION = "generation", gettext_lazy("generation")
        FILTER = "filter", gettext_lazy("filter")
        ADJUDICATE = "adjudicate", gettext_lazy("adjudicate")
        CHECK = "check", gettext_lazy("check")
        WRITE = "write", gettext_lazy("write")
        ENTITY = "entity", gettext_lazy("entity")
        MEASURE = "measure", gettext_lazy("measure")
        # This role and the next four are about no pair (judges.models.retrieval).
        REWRITE = "rewrite", gettext_lazy("rewrite")
        REASON = "reason", gettext_lazy("reason")
        RANK = "rank", gettext_lazy("rank")
        EMBED = "embed", gettext_lazy("embed")
        WEB = "web", gettext_lazy("web search")
        # Steps of conversations (judges.conversations), about no pair either.
        ANSWER = "answer", gettext_lazy("answer")
        CORRECT = "correct", gettext_lazy("check of an answer")
        SEARCH = "search", gettext_lazy("search")
        ASSESS = "assess", gettext_lazy("assessment of an answer")
        REFERENCE = "reference", gettext_lazy("reference answer")
        PERSONA = "persona", gettext_lazy("persona")
        CLASSIFY = "classify", gettext_lazy("type of query")
        OUTLINE = "outline", gettext_lazy("answer to a synthetic query")
        DECOMPOSE = "decompose", gettext_lazy("aspects")
        BLUEPRINT = "blueprint", gettext_lazy("blueprint")
        NEGATIVES = "negatives", gettext_lazy("blueprints of negatives")
        COMPOSE = "compose", gettext_lazy("written document")
        KEYWORDS = "keywords", gettext_lazy("keywords")
        ASK = "ask", gettext_lazy("written query")
        PREFER = "prefer", gettext_lazy("preference")

    class Outcome(models.TextChoices):
        LABELLED = "labelled", gettext_lazy("labelled")
        UNPARSED = "unparsed", gettext_lazy("unparsed")
        TRUNCATED = "truncated", gettext_lazy("truncated")
        PROMPT_CUT = "prompt_cut", gettext_lazy("prompt cut by the server")
        REFUSED = "refused", gettext_lazy("refused")
        ERROR = "error", gettext_lazy("error")
        OUT_OF_RANGE = "out_of_range", gettext_lazy("out of range")

    role = models.CharField(max_length=10, choices=Role)
    outcome = models.CharField(max_length=12, choices=Outcome)
    cached = models.BooleanField(default=False, help_text="Taken over from an earlier, equal call: nothing was sent.")
    error = models.TextField(blank=True)
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP status, where there was one.")
    finish_reason = models.CharField(max_length=50, blank=True)
    answered_by = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="The model that the answer names, where it is another than the judge's.",
    )
    tokens_in = models.PositiveIntegerField(default=0)
    tokens_cached = models.PositiveIntegerField(default=0)
    tokens_out = models.PositiveIntegerField(default=0)
    tokens_reasoning = models.PositiveIntegerField(default=0)
    cost = models.FloatField(null=True, help_text="USD; null: unknown, for want of a price or of the tokens used.")
    assumed = models.FloatField(
        default=0.0, db_default=0.0, help_text="USD that stand for an unknown cost: the most that it can be."
    )
    milliseconds = models.PositiveIntegerField(default=0)
    cache_key = models.CharField(max_length=64)
    started_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        abstract = True


class DecidingAttempts(models.Manager["Attempt"]):
    """Attempts that count, for a document in windows only those of the deciding one: like the view counted_attempt."""

    def get_queryset(self) -> models.QuerySet["Attempt"]:
        same = {name: models.OuterRef(name) for name in ("campaign", "pair", "window")}
        return super().get_queryset().filter(Q(window=0) | models.Exists(Work.objects.filter(**same)), counts=True)


class Attempt(JudgeCall):
    """A call of a judge about a pair, with any outcome. Append-only. A turn or a vote is an attempt that counts."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="attempts")
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="attempts")
    judge = models.ForeignKey(JudgeVersion, models.PROTECT)
    prompt = models.ForeignKey(PromptVersion, models.PROTECT)
    round = models.PositiveSmallIntegerField(default=0, help_text="Of the debate, from 1; 0: no part of a debate.")
    agent_pair = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Which pair of agents speaks in the debate, from 0."
    )
    place = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="The voter's place on the panel, or the judge's in the filter, from 0."
    )
    generation = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Which of several answers or texts, from 0."
    )
    window = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="Which window of a long document it is about, from 1; 0: the document."
    )
    number = models.PositiveSmallIntegerField(default=1, help_text="1 for the first try of this turn or vote.")
    counts = models.BooleanField(help_text="This is the turn or the vote; earlier tries are not.")
    verdict = models.SmallIntegerField(
        null=True, help_text="0 or 1; null unless labelled, and for texts, which say nothing about relevance."
    )
    score = models.SmallIntegerField(null=True, help_text="Grade on the judge's own scale, where it has more than two.")
    probabilities = models.JSONField(
        null=True, help_text="By answer, as the provider gave them: {yes, no}, {the score: P}, or one for each grade."
    )
    reason = models.TextField(blank=True, help_text="Of a turn or vote; the answer itself for write and measure.")
    reasoning = models.TextField(
        blank=True, default="", db_default="", help_text="What the model thought before it answered, where it is told."
    )
    quotes = models.JSONField(default=list, help_text="[{text, start, end}]; start and end null: not in the document.")
    tokens_written = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Of tokens_in: to the provider's prompt cache, where that is counted apart."
    )

    objects = models.Manager["Attempt"]()
    deciding = DecidingAttempts()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["campaign", "pair", "role", "round", "agent_pair", "place", "generation", "window"],
                condition=Q(counts=True),
                name="attempt_counts_once",
            ),
            models.CheckConstraint(
                name="attempt_verdict",
                condition=Q(outcome="labelled", verdict__isnull=False) & ~Q(role__in=TEXT_ROLES) | Q(verdict=None),
            ),
        ]
        indexes = [
            models.Index(fields=["campaign", "pair", "id"], name="attempt_pair"),
            models.Index(fields=["cache_key"], name="attempt_cache", condition=Q(outcome="labelled")),
        ]
        triggers = append_only.TRIGGERS

    def __str__(self) -> str:
        return f"{self.campaign_id}/{self.pair_id} {self.role} {self.round}"


class AttemptBody(models.Model):
    """The compressed bodies of an attempt, sent and received, in a separate table."""

    pk = models.CompositePrimaryKey("campaign_id", "attempt_id")
    campaign_id = models.BigIntegerField()
    attempt_id = models.BigIntegerField()
    messages = models.BinaryField(help_text="zlib of the rendered messages, JSON.")
    raw = models.BinaryField(help_text="zlib of the raw response body, as it came.")

    class Meta:
        managed = False
        db_table = "judges_attemptbody"

    def __str__(self) -> str:
        return f"{self.campaign_id}/{self.attempt_id}"


class Tally(models.Model):
    """Counters of a campaign, in shards, written in the transaction of what they count."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="tallies", db_index=False)
    shard = models.PositiveSmallIntegerField()
    key = models.CharField(max_length=100)
    value = models.FloatField(default=0)

    class Meta:
        verbose_name_plural = "tallies"
        constraints = [models.UniqueConstraint(fields=["campaign", "shard", "key"], name="tally_once")]

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class Audit(models.Model):
    """A labelled pair that was drawn for people to check, with the policy's label.

    It is created with the label, at the campaign's end, or when an admin draws more. Its item may be an earlier one of
    the same pair, whose answers are as blind.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="audits", db_index=False)
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="audits")
    item = models.ForeignKey(Item, models.CASCADE, related_name="audits")
    stratum = models.CharField(max_length=40, help_text="The route to the label: judges.domain.audits.")
    probability = models.FloatField(help_text="Of being in the sample, in (0, 1]: that of its route and part.")
    label = models.SmallIntegerField(help_text="0 or 1: the policy's verdict before anybody saw the pair.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["campaign", "pair"], name="audit_once"),
            models.CheckConstraint(name="audit_probability", condition=Q(probability__gt=0, probability__lte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.campaign_id}/{self.pair_id} {self.stratum}"
