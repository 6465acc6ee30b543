"""Addresses of accounts: signing in and up, passwords, second factor, sessions, provider."""

from allauth.account import views as allauth
from allauth.mfa.base import views as factor
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from django.urls import URLPattern, path, re_path

from annotation.access.permissions import guard_library_view
from annotation.people.accounts import views
from corpus.access import Action, View

# Of allauth only what is wanted, each with its action: no open sign-up, no address confirmation.
LIBRARY_VIEWS: tuple[tuple[str, Action, View, str], ...] = (
    ("logout/", "public", allauth.logout, "account_logout"),
    ("signup/", "public", allauth.signup, "account_signup"),
    ("inactive/", "public", allauth.account_inactive, "account_inactive"),
    ("confirm/", "site", allauth.reauthenticate, "account_reauthenticate"),
    ("password/change/", "site", allauth.password_change, "account_change_password"),
    ("password/reset/sent/", "public", allauth.password_reset_done, "account_reset_password_done"),
    ("password/reset/done/", "public", allauth.password_reset_from_key_done, "account_reset_password_from_key_done"),
    ("second-factor/", "site", factor.index, "mfa_index"),
    ("second-factor/code/", "public", factor.authenticate, "mfa_authenticate"),
    ("second-factor/confirm/", "site", factor.reauthenticate, "mfa_reauthenticate"),
    ("second-factor/on/", "site", totp.activate_totp, "mfa_activate_totp"),
    ("second-factor/off/", "site", totp.deactivate_totp, "mfa_deactivate_totp"),
    ("recovery-codes/", "site", codes.view_recovery_codes, "mfa_view_recovery_codes"),
    ("recovery-codes/new/", "site", codes.generate_recovery_codes, "mfa_generate_recovery_codes"),
    ("recovery-codes/download/", "site", codes.download_recovery_codes, "mfa_download_recovery_codes"),
)

urlpatterns: list[URLPattern] = [
    path("display/", views.display, name="display"),
    path("accounts/", views.account, name="account"),
    path("accounts/login/", views.sign_in, name="account_login"),
    path("accounts/first/", views.create_first_owner, name="first_owner"),
    *(path(f"accounts/{at}", guard_library_view(who, view), name=name) for at, who, view, name in LIBRARY_VIEWS),
    path("accounts/unsent-form/", views.unsent_form, name="unsent_form"),
    path("accounts/mail/", views.mail_address, name="mail_address"),
    path("accounts/inbox-mail/", views.inbox_mail, name="inbox_mail"),
    path("accounts/sessions/end/", views.end_other_sessions, name="end_other_sessions"),
    path("accounts/sessions/<int:session>/end/", views.end_session, name="end_session"),
    path("accounts/password/reset/", views.request_password_reset, name="account_reset_password"),
    re_path(
        r"^accounts/password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[0-9A-Za-z-]+)/$",
        guard_library_view("public", allauth.password_reset_from_key),
        name="account_reset_password_from_key",
    ),
    path("accounts/provider/cancelled/", views.cancelled, name="socialaccount_login_cancelled"),
    path("accounts/provider/disconnect/", views.disconnect, name="provider_disconnect"),
    path("accounts/provider/<slug:provider_id>/login/", views.login, name="openid_connect_login"),
    path("accounts/provider/<slug:provider_id>/callback/", views.callback, name="openid_connect_callback"),
    path("invitations/<str:token>/", views.invitation, name="invitation"),
    path("invitations/<str:token>/provider/", views.start_invited_login, name="invitation_provider"),
]
