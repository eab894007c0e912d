"""The scripts of bench/ import one another as files of one folder; so do their tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "bench"))
