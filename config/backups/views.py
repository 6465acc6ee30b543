"""The owners' page of backups: make one, and download or delete one after the password or a code was given again."""

import time

from allauth.account import app_settings
from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from actions.services import Actor
from annotation.access.permissions import SiteScope, action
from config.backups import services
from config.backups.selectors import find_backup, free_bytes, list_backups
from jobs import background
from store.downloads import send_file

STOP_POLLING = 286  # HTMX stops polling at this status.


@action("own-site", "GET")
def backups(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """List the backups, the one that is being written, and the free space. HTMX polls the list."""
    job, files = background.last(services.TASK, services.SITE), list_backups()
    goes_on = job is not None and not job.is_over
    free = free_bytes()
    context = {"scope": scope, "job": job, "goes_on": goes_on, "backups": files, "free": free}
    # A new backup needs about as much as the last one.
    context["is_tight"] = bool(files) and free < files[0].size
    if request.headers.get("HX-Request"):
        return render(request, "backups/_backups.html", context, status=200 if goes_on else STOP_POLLING)
    return render(request, "backups/backups.html", context)


@action("own-site", "POST")
def make_backup(request: HttpRequest, scope: SiteScope) -> HttpResponse:
    """Have a worker write a backup."""
    services.ask_backup(Actor.of(scope), None)
    return redirect("backups")


@action("own-site", "GET")
def backup(request: HttpRequest, scope: SiteScope, file: str) -> HttpResponse:
    """Show a backup with the buttons to download and to delete it, once the owner has confirmed who they are."""
    backup_file = find_backup(file)
    return confirm_identity(request, scope) or render(
        request, "backups/backup.html", {"scope": scope, "backup": backup_file}
    )


@action("own-site", "POST")
def download_backup(request: HttpRequest, scope: SiteScope, file: str) -> HttpResponseBase:
    """Send a backup to an owner who has just confirmed who they are."""
    backup_file = find_backup(file)
    if refusal := confirm_identity(request, scope, back=reverse("backup", args=[file])):
        return refusal
    services.note_download(Actor.of(scope), None, backup_file)
    return send_file(request, backup_file.path, content_type="application/x-tar")


@action("own-site", "POST")
def delete_backup(request: HttpRequest, scope: SiteScope, file: str) -> HttpResponse:
    """Delete a backup."""
    backup_file = find_backup(file)
    if refusal := confirm_identity(request, scope, back=reverse("backup", args=[file])):
        return refusal
    services.delete_backup(Actor.of(scope), None, backup_file)
    messages.success(request, _("%(name)s was deleted.") % {"name": backup_file.name})
    return redirect("backups")


def confirm_identity(request: HttpRequest, scope: SiteScope, *, back: str = "") -> HttpResponse | None:
    """Return None where a person has just given their code, or without a second factor their password.

    Otherwise return a redirect to the page that asks for it, and leads back. Who has neither, because a provider signs
    them in, must have signed in just now.
    """
    has_factor = Authenticator.objects.filter(user=scope.user, type=Authenticator.Type.TOTP).exists()
    has_password = scope.user.has_usable_password()
    method = "mfa" if has_factor else "password" if has_password else "socialaccount"
    earliest = time.time() - app_settings.REAUTHENTICATION_TIMEOUT
    records = get_authentication_records(request, scope.user)
    if any(record["method"] == method and record["at"] >= earliest for record in records):
        return None
    if not has_factor and not has_password:
        messages.error(request, _("Sign out and in again, and download within five minutes."))
        return redirect("backups")
    page = "mfa_reauthenticate" if has_factor else "account_reauthenticate"
    return redirect(f"{reverse(page)}?{urlencode({'next': back or request.path})}")
