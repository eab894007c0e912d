"""Result files become one page: tables that never mix protocols, curves to point at, pictures, settings."""

from keypatch.reports.page import report

__all__ = ["report"]
