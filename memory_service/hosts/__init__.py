"""Coding agents as hosts of the memory: their settings, their hooks, their transcripts.

A host is a program that runs an agent. What it calls and what it reads are its own: a file here knows one side of it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

HostName: TypeAlias = Literal["claude-code", "codex", "cursor", "opencode", "openclaw"]
HOSTS: tuple[HostName, ...] = get_args(HostName)
