"""Run by each Python that a test starts under `pytest --engine postgres`: its homes are databases, too."""

import os
import sys

if os.environ.get("TEST_HOMES_DATABASE"):
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from tests.engines import install

    install()
