"""Addresses of accounts: signing in and up, passwords, the second factor, sessions, the sign-in provider."""

from allauth.account import views as allauth
from allauth.mfa.base import views as factor
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from django.urls import URLPattern, path, re_path

from annotation.accounts.views import accounts, single_sign_on
from annotation.permissions import guard_library_view

# Of allauth only what is wanted, one by one, each with its action: no open sign-up, no address confirmation.
urlpatterns: list[URLPattern] = [
    path("display/", accounts.display, name="display"),
    path("accounts/", accounts.account, name="account"),
    path("accounts/login/", guard_library_view("public", allauth.login), name="account_login"),
    path("accounts/logout/", guard_library_view("public", allauth.logout), name="account_logout"),
    path("accounts/signup/", guard_library_view("public", allauth.signup), name="account_signup"),
    path("accounts/inactive/", guard_library_view("public", allauth.account_inactive), name="account_inactive"),
    path("accounts/confirm/", guard_library_view("site", allauth.reauthenticate), name="account_reauthenticate"),
    path("accounts/mail/", accounts.mail_address, name="mail_address"),
    path("accounts/sessions/end/", accounts.end_other_sessions, name="end_other_sessions"),
    path("accounts/sessions/<int:session>/end/", accounts.end_session, name="end_session"),
    path(
        "accounts/password/change/", guard_library_view("site", allauth.password_change), name="account_change_password"
    ),
    path("accounts/password/reset/", accounts.request_password_reset, name="account_reset_password"),
    path(
        "accounts/password/reset/sent/",
        guard_library_view("public", allauth.password_reset_done),
        name="account_reset_password_done",
    ),
    path(
        "accounts/password/reset/done/",
        guard_library_view("public", allauth.password_reset_from_key_done),
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^accounts/password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[0-9A-Za-z-]+)/$",
        guard_library_view("public", allauth.password_reset_from_key),
        name="account_reset_password_from_key",
    ),
    path("accounts/second-factor/", guard_library_view("site", factor.index), name="mfa_index"),
    path("accounts/second-factor/code/", guard_library_view("public", factor.authenticate), name="mfa_authenticate"),
    path(
        "accounts/second-factor/confirm/", guard_library_view("site", factor.reauthenticate), name="mfa_reauthenticate"
    ),
    path("accounts/second-factor/on/", guard_library_view("site", totp.activate_totp), name="mfa_activate_totp"),
    path("accounts/second-factor/off/", guard_library_view("site", totp.deactivate_totp), name="mfa_deactivate_totp"),
    path(
        "accounts/recovery-codes/",
        guard_library_view("site", codes.view_recovery_codes),
        name="mfa_view_recovery_codes",
    ),
    path(
        "accounts/recovery-codes/new/",
        guard_library_view("site", codes.generate_recovery_codes),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "accounts/recovery-codes/download/",
        guard_library_view("site", codes.download_recovery_codes),
        name="mfa_download_recovery_codes",
    ),
    path("accounts/provider/cancelled/", single_sign_on.cancelled, name="socialaccount_login_cancelled"),
    path("accounts/provider/disconnect/", accounts.disconnect, name="provider_disconnect"),
    path("accounts/provider/<slug:provider_id>/login/", single_sign_on.login, name="openid_connect_login"),
    path("accounts/provider/<slug:provider_id>/callback/", single_sign_on.callback, name="openid_connect_callback"),
    path("invitations/<str:token>/", accounts.invitation, name="invitation"),
    path("invitations/<str:token>/provider/", single_sign_on.start_invited_login, name="invitation_provider"),
]
