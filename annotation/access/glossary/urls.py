"""The address of the glossary."""

from django.urls import path

from annotation.access.glossary import views

urlpatterns = [path("glossary/", views.glossary, name="glossary")]
