"""Settings of the site, from environment variables (config/env.py), with safe defaults."""

import logging
import os
from pathlib import Path

from csp.constants import NONE, SELF
from whitenoise.compress import Compressor

import embedded
from config import env, loopback, single_sign_on, version
from config.operating import logs

# Before all other settings: from here on, no library can reach another machine.
if env.flag("QUORUM_LOOPBACK_ONLY"):
    loopback.enforce()

BASE_DIR = env.ROOT
VAR = env.var()
VERSION = version.VERSION
embedded.keep_private(VAR)

# Prefix of Redis keys and queue names, which separates two instances on one external server.
PREFIX = env.text("QUORUM_PREFIX", "quorum")
DEBUG = env.flag("QUORUM_DEBUG")
PRODUCTION = env.flag("QUORUM_PRODUCTION")
SECRET_KEY = env.secret("SECRET_KEY") or embedded.secret_key(VAR)
# Encrypts keys that admins store in the browser; empty: none are stored. Later ones only decrypt.
STORED_KEYS_SECRETS = env.long_secrets("QUORUM_STORED_KEYS_SECRET")
ALLOWED_HOSTS = env.comma_separated("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    # For PostgreSQL's own lookups and indexes; the schema uses no other database.
    "django.contrib.postgres",
    "django.contrib.sessions",
    "config.apps.StaticFilesConfig",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.usersessions",
    "csp",
    "ninja",
    "django_htmx",
    "django_prometheus",
    "django_structlog",
    "pgtrigger",
    "template_partials",
    "config.apps.ConfigConfig",
    "jobs",
    "store",
    "corpus",
    "judges",
    "annotation",
    "benchmark",
    "training",
    "api",
]

MIDDLEWARE = [
    # Scrapers and probes use neither a name of ALLOWED_HOSTS nor TLS nor a session, so they are answered first
    # (docs/adr/0097).
    "config.operating.metrics_page.MetricsMiddleware",
    "config.health.HealthMiddleware",
    # Before everything that may refuse a request, so that refusals have a log line and an id, too.
    "config.operating.request_log.RequestLogMiddleware",
    "config.operating.web_metrics.RequestMetricsMiddleware",
    "config.api_errors.ApiErrorMiddleware",
    "config.limits.NoNulMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "annotation.access.languages.LanguageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    # After sessions, because signed-in people may send more (docs/adr/0028).
    "config.limits.BodyLimitMiddleware",
    "django.middleware.http.ConditionalGetMiddleware",
    # After the one before, which names a page by its content.
    "annotation.access.readable.ReadableMiddleware",
    # Last, so that they are the first to handle an error of a view.
    "config.races.RaceMiddleware",
    "config.unavailability.UnavailabilityMiddleware",
]

MAX_UPLOAD_BYTES = env.count("QUORUM_UPLOAD_MB", 2_000, least=1) * 1_000_000
# A file that is uploaded in parts, each of them a request.
MAX_FILE_BYTES = env.count("QUORUM_FILE_MB", 20_000, least=1) * 1_000_000
# All uploads of a collection that are not yet imported.
UPLOADS_BYTES = env.count("QUORUM_UPLOADS_MB", 50_000, least=1) * 1_000_000

API_PER_MINUTE = env.count("QUORUM_API_PER_MINUTE", 1_200, least=1)  # Requests of one access token.
# Servers (host:port) to which requests of search endpoints may go although they are not on the public network.
SEARCH_HOSTS = env.servers("QUORUM_SEARCH_HOSTS")
# Webhooks are sent to public addresses by https, and to these networks (like 10.0.0.0/8) also by http.
WEBHOOK_NETWORKS = env.networks("QUORUM_WEBHOOK_NETWORKS")
WEBHOOK_RETRY_SECONDS = env.number(
    "QUORUM_WEBHOOK_RETRY_S", 5
)  # Before the second attempt; each further takes 4 times.
WEBHOOK_FAILING_DAYS = env.number("QUORUM_WEBHOOK_FAILING_DAYS", 5)  # Days of failures before a webhook is disabled.

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["annotation.templatetags.states", "annotation.templatetags.times"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.unavailability.redis_context",
                "config.navigation.navigation_context",
                "config.version.version_context",
                "annotation.access.languages.look_context",
            ],
        },
    }
]

# Connections: a pool of 8 in each web process (one process for each processor), a pool of 2 in each child of a judge
# worker, and a single connection in commands. config/checks.py adds them up.
WEB_PROCESSES = env.count("QUORUM_WEB_PROCESSES", min(os.cpu_count() or 1, 8), least=1)
WEB_THREADS = env.count("QUORUM_WEB_THREADS", 8, least=1)
# Seconds for which a node that has to end answers 503 at /readyz but keeps serving; 0: it ends at once.
STOP_DELAY_SECONDS = env.number("QUORUM_STOP_DELAY_S", 0)
# granian's own exporter for Prometheus; 0: none.
METRICS_PORT = env.count("QUORUM_METRICS_PORT", 0, most=65_535)
METRICS_BIND = env.text("QUORUM_METRICS_BIND", "127.0.0.1")
# The token for /metrics; "": only this machine may read it, and in production nobody (docs/operators.md).
METRICS_TOKEN = env.secret("QUORUM_METRICS_TOKEN")
JUDGE_WORKERS = env.count("QUORUM_JUDGE_WORKERS", 1)
CONNECTIONS_PER_JUDGE_WORKER = 2
MAX_CONNECTIONS = env.count("QUORUM_MAX_CONNECTIONS", 100, least=1)
DATABASES = {"default": embedded.database_settings(VAR)}
if pool_size := env.count("QUORUM_DB_POOL", 0):
    patience = env.number("QUORUM_DB_PATIENCE_S", 30)
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": pool_size, "timeout": patience}
    # A restart of PostgreSQL breaks pooled connections, so each is checked before a request uses it (docs/adr/0074).
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = embedded.redis_url(VAR)
# Sessions and counts of password attempts are stored in PostgreSQL, so that pages do not need Redis (docs/adr/0097).
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "annotation_cache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}

SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = PRODUCTION
CSRF_COOKIE_SECURE = PRODUCTION
SECURE_SSL_REDIRECT = PRODUCTION
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = PRODUCTION
SECURE_HSTS_PRELOAD = PRODUCTION
# The proxy must set this header itself, and drop a visitor's header of the same name.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PRODUCTION else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        # Inline scripts and styles are forbidden, because nearly every page shows untrusted texts.
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

AUTH_USER_MODEL = "annotation.User"
# Apps that must not import `annotation` find its permissions and its audit log by these names (docs/adr/0028).
ACCESS = "annotation.access.permissions.action"
AUDIT = "annotation.access.audit_log.recording.record"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = ["annotation.people.accounts.passwords.PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_LOGOUT_REDIRECT_URL = "home"
CSRF_FAILURE_VIEW = "annotation.people.accounts.views.csrf_failure"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
# There may be no mail server: people join by invitation links, which other people hand over.
ACCOUNT_EMAIL_VERIFICATION = "none"
# Many annotators may sign in from the same address; guessing the password of an account remains hard.
ACCOUNT_RATE_LIMITS = {
    "login": "300/m/ip",
    "login_failed": "60/m/ip,5/5m/key",
    # Reading a page by its link needs no account, and each opening computes the page.
    "shared_page": "120/m/ip",
    # Just as many may choose a password by their links, which cannot be guessed.
    "reset_password_from_key": "300/m/ip",
}
ACCOUNT_ADAPTER = "annotation.people.accounts.invitations.InvitationOnlyAdapter"
# No mail is sent to addresses without an account.
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Quorum] "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if PRODUCTION else "http"
PASSWORD_RESET_TIMEOUT = 86_400  # one day
# Number of proxies that set X-Forwarded-For; 0: the connection's address is the visitor's.
ALLAUTH_TRUSTED_PROXY_COUNT = env.count("QUORUM_TRUSTED_PROXIES", 0)

MFA_ADAPTER = "annotation.people.accounts.second_factor.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Quorum"
MFA_TOTP_TOLERANCE = 1  # A phone's clock may be wrong by 30 seconds.
MFA_FORMS = {
    "authenticate": "annotation.people.accounts.second_factor.SignInForm",
    "reauthenticate": "annotation.people.accounts.second_factor.ConfirmForm",
}

# Sign-in by an OpenID Connect provider, if its address is set. It is only configured here, never in the database.
OIDC_URL = env.web_address("QUORUM_OIDC_URL")
SOCIALACCOUNT_ADAPTER = "annotation.people.accounts.single_sign_on.SingleSignOnAdapter"
# A mail address from a provider must not give access to another person's account.
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
SOCIALACCOUNT_PROVIDERS = single_sign_on.openid_providers(OIDC_URL)
CONTENT_SECURITY_POLICY["DIRECTIVES"]["form-action"] += single_sign_on.form_origins(OIDC_URL)

# Mail is sent if a server is set; without one, people hand over links.
EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_PORT = env.count("EMAIL_PORT", 587, most=65_535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.secret("EMAIL_HOST_PASSWORD")
EMAIL_USE_SSL = env.flag("EMAIL_USE_SSL")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=not EMAIL_USE_SSL)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "quorum@localhost")

LANGUAGE_CODE = "en"
TIME_ZONE = env.time_zone("TIME_ZONE", "UTC")
USE_TZ = True
# English is in the source, other languages are in locale/ (docs/annotators.md). annotation/access/languages.py chooses
# the language of a request.
USE_I18N = True
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["config.formats"]
LANGUAGE_COOKIE_NAME = "language"

# The store for files that several machines share (docs/operators.md); empty: files are only in VAR.
STORE = env.text("QUORUM_STORE")

# Folder of the base models that the training page may name, each in its own folder (training/recipes/base_models.py).
BASE_MODELS = Path(env.text("QUORUM_BASE_MODELS", str(VAR / "bases"))).resolve()

# Modules that open models in a folder for runs of the benchmark (benchmark/runs: embedding, sparse, folder_rerank).
LOCAL_EMBEDDERS = "training.published.embedder"
LOCAL_SPARSE_ENCODERS = "training.published.sparse"
LOCAL_RERANKERS = "training.published.opening"

# The path of a site that shares its host with others; the proxy may pass it on or remove it (config/sub_path.py).
SUB_PATH = env.sub_path("QUORUM_SUB_PATH")
FORCE_SCRIPT_NAME = SUB_PATH or None
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = LANGUAGE_COOKIE_PATH = f"{SUB_PATH}/"
STATIC_URL = f"{SUB_PATH}/static/"
STATIC_ROOT = VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# Pages only use fingerprinted files. Compressing source maps would take longer than compressing everything else.
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")

CELERY_BROKER_URL = embedded.celery_url(VAR)
CELERY_BROKER_TRANSPORT_OPTIONS = {"global_keyprefix": f"{PREFIX}:"}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = "judge"
# Messages only wake up workers; the work is stored in PostgreSQL, and a lost message is sent again (jobs.tasks).
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_IGNORE_RESULT = True
# A busy process must not reserve messages that could wake up an idle one.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

# The judging engine.
# Seconds before the lease of a worker that no longer renews it expires, and others can take over its pair or job.
LEASE_SECONDS = env.number("QUORUM_LEASE_S", 120, least=1)
DRAIN_SECONDS = env.number("QUORUM_DRAIN_S", 60)
RETRY_SECONDS = env.number("QUORUM_RETRY_S", 0.5)
BATCH_POLL_SECONDS = env.number("QUORUM_BATCH_POLL_S", 30)
# Limits of each worker process. The limits of accounts apply to all processes together (judges.engine.limits).
PAIRS_IN_FLIGHT = env.count("QUORUM_PAIRS_IN_FLIGHT", 128, least=1)
CALLS_IN_FLIGHT = env.count("QUORUM_CALLS_IN_FLIGHT", 128, least=1)

LOG_FORM = env.text("QUORUM_LOG", "json" if PRODUCTION else "text")
LOGGING = logs.logging_settings(LOG_FORM, env.text("QUORUM_LOG_LEVEL"))
# Log lines of requests and tasks (django-structlog): with the account if it is known, without IP addresses.
DJANGO_STRUCTLOG_USER_ID_FIELD = ""
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
DJANGO_STRUCTLOG_CELERY_ENABLED = True
DJANGO_STRUCTLOG_CELERY_DEFAULT_LOG_LEVEL = logging.DEBUG  # Tasks are wake-ups, of which there are many.
# Traces of requests and tasks: "" for none, otlp for a collector, or console (docs/operators.md).
TRACES = env.one_of("QUORUM_TRACES", ("otlp", "console"))
