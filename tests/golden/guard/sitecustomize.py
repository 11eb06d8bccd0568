"""Lets the command itself run, and no Python that it starts: probes of the machine count as failed.

What they find hangs on the machine and on the moment (one way to multiply 1.15 times as fast as
another), and other products give other last bits. This folder stands first in PYTHONPATH of every
golden run.
"""

import os

if "GOLDEN_STARTED" in os.environ:
    os._exit(3)
os.environ["GOLDEN_STARTED"] = "1"
