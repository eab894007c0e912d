"""Result files become one page: tables that never mix protocols, curves to point at, pictures, settings."""

from keypatch.reports.reporting import report

__all__ = ["report"]
