"""Photographs of planes with known homographies, and photographs turned in steps."""
