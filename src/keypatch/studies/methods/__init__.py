"""Recipes compared under equal conditions."""
