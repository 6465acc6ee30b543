"""The address of the glossary."""

from django.urls import path

from annotation.glossary import views

urlpatterns = [path("glossary/", views.glossary, name="glossary")]
