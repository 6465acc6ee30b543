"""Addresses of accounts, the start page and the admin pages of a collection."""

from allauth.account import views as allauth
from django.urls import path

from annotation.permissions import foreign
from annotation.views import accounts, campaigns, collection, imports, members, pairs, site, texts

# Of allauth only what is wanted: no addresses, no confirmation, no reset by mail (people have no mail address here).
account_urls = [
    path("accounts/", accounts.account, name="account"),
    path("accounts/login/", foreign("public", allauth.login), name="account_login"),
    path("accounts/logout/", foreign("public", allauth.logout), name="account_logout"),
    path("accounts/signup/", foreign("public", allauth.signup), name="account_signup"),
    path("accounts/inactive/", foreign("public", allauth.account_inactive), name="account_inactive"),
    path("accounts/<int:user>/password/", accounts.reset_password, name="reset_password"),
    path("accounts/password/change/", foreign("site", allauth.password_change), name="account_change_password"),
    path("invitations/<str:token>/", accounts.invitation, name="invitation"),
]

site_urls = [
    path("", site.home, name="home"),
    path("collections/new/", site.new_collection, name="new_collection"),
]

collection_urls = [
    path("", collection.home, name="collection"),
    path("import/", imports.import_files, name="import"),
    path("settings/", texts.settings, name="settings"),
    path("settings/instruction/", texts.instruction, name="instruction"),
    path("settings/guidelines/", texts.guidelines_editor, name="guidelines_editor"),
    path("members/", members.people, name="members"),
    path("members/<int:member>/role/", members.role, name="member_role"),
    path("members/<int:member>/active/", members.active, name="member_active"),
    path("members/invite/", members.invite, name="invite"),
    path("members/join/", members.join, name="join_as_owner"),
    path("invitations/<int:invitation>/revoke/", members.revoke, name="revoke_invitation"),
    path("campaigns/", campaigns.campaigns, name="campaigns"),
    path("campaigns/start/", campaigns.start, name="start_campaign"),
    path("campaigns/evidence/", campaigns.write_evidence, name="write_evidence"),
    path("campaigns/<int:campaign>/<slug:act>/", campaigns.control, name="control_campaign"),
    path("pairs/", pairs.pairs, name="pairs"),
    path("pairs/skipped/adjudicate/", pairs.hand_over_skipped, name="hand_over_skipped"),
    path("pairs/<int:pair>/", pairs.pair, name="pair"),
]

urlpatterns = [
    *account_urls,
    *site_urls,
    *[path(f"c/<slug:name>/{url.pattern}", url.callback, name=url.name) for url in collection_urls],
]
