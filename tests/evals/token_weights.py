"""Fit and measure of the estimate of tokens, against o200k_base, on text of this machine.

`python -m tests.evals.token_weights [--fit]`

Kinds of text are read from what is installed: sources, READMEs, JSON files, and messages of programs in forty languages
(`/usr/share/locale`); and made: records of APIs, numbers, logs, digests and dumps of binaries, base64, URLs, emoji. Of
each kind, one half of the files is for fitting, the other says what that is worth. `--fit` prints new weights for
`memory_service/messages/sizes.py`: the least squares of the relative error over kinds, what comes out too small
counting a third more, with weights within bounds. Needs litellm, whose package has the vocabulary.
"""

from __future__ import annotations

import argparse
import base64
import gettext
import glob
import hashlib
import json
import os
import random
import sysconfig
import uuid
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memory_service.llm.token_counter import exact_counter
from memory_service.messages.sizes import (
    ASCII_WEIGHTS,
    BLOCK_WEIGHTS,
    BLOCKS,
    SCRIPT_WEIGHTS,
    _classes_of,
    estimate_tokens,
)

_LIBRARY, _PACKAGES = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
_FILES = {
    "python": (f"{_LIBRARY}/*.py", f"{_LIBRARY}/*/*.py"),
    "javascript": ("/usr/lib/node_modules/npm/**/*.js", "/usr/share/javascript/**/*.js"),
    "c": ("/usr/include/**/*.h",),
    "perl": ("/usr/share/perl/**/*.pm", "/usr/share/perl5/**/*.pm"),
    "shell": ("/var/lib/dpkg/info/*.postinst", "/etc/init.d/*", "/usr/bin/*"),
    "html and css": ("/usr/share/**/*.html", "/usr/share/**/*.css", "/usr/lib/node_modules/**/*.html"),
    "markdown": ("/usr/lib/node_modules/npm/**/*.md", f"{_PACKAGES}/*.dist-info/METADATA"),
    "prose": ("/usr/share/doc/**/README*", "/usr/share/doc/**/FAQ*", "/usr/share/common-licenses/*"),
    "json, as it lies": ("/usr/share/**/*.json", "/usr/lib/node_modules/**/*.json", f"{_PACKAGES}/**/*.json"),
    "yaml, toml, ini": ("/etc/**/*.conf", f"{_PACKAGES}/**/*.toml", "/usr/lib/node_modules/**/*.yml"),
}
_LANGUAGES = (
    "ru uk bg sr el he ar fa hi mr ne bn pa gu ta te kn ml si th my km ka hy ko ja zh_CN zh_TW vi tr de fr es pt_BR it "
    "nl sv pl cs hu fi ro"
).split()
# Scripts that nothing here is written in: random words of their letters.
_RARE = {
    "ethiopic": (0x1200, 0x1248), "cherokee": (0x13A0, 0x13F0), "lao": (0xE81, 0xEA0), "syriac": (0x712, 0x72C),
    "phonetic": (0x250, 0x2A8), "fullwidth": (0xFF21, 0xFF5A),
}  # fmt: skip
_PIECES = 30
_LEAST_CHARS, _MOST_CHARS = 300, 3_000
Sources = dict[str, list[str]]
Halves = tuple[list[str], list[str]]


def samples() -> dict[str, Halves]:
    """Pieces of text by kind: those for fitting, and those for judging."""
    rng = random.Random(5)
    sources: Sources = {kind: _read(patterns, rng) for kind, patterns in _FILES.items()}
    sources["json, compact"] = [json.dumps(value) for value in _values(sources["json, as it lies"])]
    sources["json, tight"] = [
        json.dumps(value, separators=(",", ":"), ensure_ascii=False) for value in _values(sources["json, as it lies"])
    ]
    sources |= _made(rng)
    sources |= {f"language {name}": _messages(name) for name in _LANGUAGES}
    halves = {kind: _halves(texts, rng) for kind, texts in sorted(sources.items())}
    return {kind: half for kind, half in halves.items() if len(half[0]) >= 5 and len(half[1]) >= 5}


def _halves(texts: Sequence[str], rng: random.Random) -> Halves:
    halves: Halves = ([], [])
    for at, text in enumerate(texts):
        for _ in range(max(1, min(2 * _PIECES // max(1, len(texts)), len(text) // 600))):
            size = rng.randint(_LEAST_CHARS, _MOST_CHARS)
            begin = rng.randrange(max(1, len(text) - size))
            halves[at % 2].append(text[begin : begin + size])
    return halves


def _read(patterns: Iterable[str], rng: random.Random) -> list[str]:
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern, recursive=True))]
    rng.shuffle(found)
    texts = list[str]()
    for path in found[:400]:
        try:
            text = Path(path).read_text("utf-8")[:200_000]
        except (OSError, ValueError):
            continue
        if len(text) > 1_000 and "\0" not in text:
            texts.append(text)
    return texts[:60]


def _values(texts: Iterable[str]) -> Iterator[Any]:
    for text in texts:
        try:
            yield json.loads(text)
        except ValueError:
            continue


def _messages(language: str) -> list[str]:
    """What programs say in a language, a text for each program."""
    texts = list[str]()
    for path in sorted(glob.glob(f"/usr/share/locale/{language}/LC_MESSAGES/*.mo")):
        try:
            with open(path, "rb") as file:
                catalog: dict[Any, Any] = vars(gettext.GNUTranslations(file))["_catalog"]
        except (OSError, ValueError, UnicodeDecodeError):
            continue
        text = "\n".join(line for key, line in catalog.items() if key and isinstance(line, str) and len(line) > 30)
        if len(text) > 1_500:
            texts.append(text[:80_000])
    return texts


def _made(rng: random.Random) -> Sources:
    """What tools print, of names and binaries of this machine."""
    paths = sorted(glob.glob(f"{_LIBRARY}/**/*.py", recursive=True))[:4_000]
    binaries = [path for path in sorted(glob.glob("/usr/bin/*")) if os.path.isfile(path)][:60]
    blobs = [Path(path).read_bytes()[:60_000] for path in binaries if os.path.getsize(path) > 30_000]
    made = defaultdict[str, list[str]](list)
    for _ in range(20):
        rows = [_row(rng.choice(paths), rng) for _ in range(60)]
        made["json, records"] += [json.dumps(rows), json.dumps(rows, indent=2)]
        made["json, lines"].append("\n".join(json.dumps(row, separators=(",", ":")) for row in rows))
        made["numbers"].append("\n".join(",".join(str(value) for value in list(row.values())[1:]) for row in rows))
        made["logs"] += ["\n".join(log(rng, row) for row in rows) for log in (_served, _timed, _syslog)]
        made["urls"].append("\n".join(f"https://files.example.com{row['path']}?v={row['size']}" for row in rows))
        blob = rng.choice(blobs)
        made["hex"] += ["\n".join(lines) for lines in _hex(blob, rng)]
        made["base64"] += [
            base64.b64encode(data).decode() for data in (zlib.compress(blob)[:4_000], rng.randbytes(4_000))
        ]
        made["emoji"].append(
            "".join(chr(rng.randint(0x1F300, 0x1F64F)) + rng.choice(("", " ", " ok ")) for _ in range(400))
        )
        for name, letters in _RARE.items():
            made[name].append(" ".join("".join(chr(rng.randint(*letters)) for _ in range(5)) for _ in range(100)))
    return dict(made)


def _row(path: str, rng: random.Random) -> dict[str, Any]:
    return {
        "path": path,
        "size": rng.randint(10, 10**6),
        "mtime": round(rng.uniform(1.6e9, 1.8e9), 3),
        "etag": rng.randbytes(8).hex(),
        "mode": oct(rng.choice((0o644, 0o755))),
        "ratio": rng.random(),
    }


def _served(rng: random.Random, row: dict[str, Any]) -> str:
    address = ".".join(str(rng.randint(1, 254)) for _ in range(4))
    return (
        f'{address} - - [{_moment(rng)} +0000] "GET {row["path"]} HTTP/1.1" {rng.choice((200, 404))} {row["size"]} "-"'
    )


def _timed(rng: random.Random, row: dict[str, Any]) -> str:
    level = rng.choice(("INFO", "WARN", "ERROR"))
    return f"{_moment(rng)} {level} [worker-{rng.randint(1, 64)}] {row['path']}: {row['size']}ms trace={row['etag']}"


def _syslog(rng: random.Random, row: dict[str, Any]) -> str:
    name = Path(row["path"]).stem
    return f"host-{rng.randint(1, 40)} {name}[{rng.randint(100, 99999)}]: {_moment(rng)} pid={row['size']}"


def _moment(rng: random.Random) -> str:
    clock = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}.{rng.randint(0, 999):03d}"
    return f"2026-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T{clock}Z"


def _hex(blob: bytes, rng: random.Random) -> Iterator[list[str]]:
    yield [hashlib.sha256(rng.randbytes(8)).hexdigest() + f"  part-{at}.bin" for at in range(60)]
    yield [blob[4_096:6_000].hex()]
    yield [str(uuid.UUID(bytes=rng.randbytes(16))) for _ in range(60)]
    yield [f"{at:08x}: " + blob[at : at + 16].hex(" ", 2) for at in range(8_192, 10_000, 16)]


# --- the fit -------------------------------------------------------------------------------------------------------

_BOUNDS = {"char": (0.0, 2.5), "border": (-0.5, 2.5), "script": (0.05, 4.0), "block": (-3.0, 3.0)}
_TOO_SMALL = 1.3
_RIDGE = 0.003


def features(text: str) -> list[int]:
    """Counts that the weights are of, in their order."""
    read, raw = _classes_of(text), text.encode("utf-8", "surrogatepass")
    blocks = [
        sum(raw.count(bytes((lead, second))) for second in seconds)
        for lead, names in BLOCKS.items()
        for seconds in names.values()
    ]
    return [*(read.count(name) for name in (*ASCII_WEIGHTS, *SCRIPT_WEIGHTS)), *blocks]


def fitted(kinds: dict[str, Halves], count: Callable[[str], int]) -> list[int]:
    """New weights, in thousandths of a token."""
    rows = list[list[float]]()
    for pieces, _ in kinds.values():
        for piece in pieces:
            share = count(piece) * len(pieces) ** 0.5
            rows.append([value / share for value in features(piece)] + [1 / len(pieces) ** 0.5])
    table = np.array(rows)
    x, y = table[:, :-1], table[:, -1]
    kinds_of = ["char" if len(name) == 1 else "border" for name in ASCII_WEIGHTS]
    bounds = np.array(
        [_BOUNDS[kind] for kind in (*kinds_of, *["script"] * len(SCRIPT_WEIGHTS), *["block"] * len(BLOCK_WEIGHTS))]
    )
    weights, pull = np.zeros(x.shape[1]), np.ones(len(y))
    for _ in range(6):
        a, b = x * pull[:, None], y * pull
        gram, target = a.T @ a + _RIDGE**2 * np.eye(x.shape[1]), a.T @ b
        for _ in range(3_000):
            for at in range(len(weights)):
                step = (target[at] - gram[at] @ weights) / gram[at, at]
                weights[at] = min(max(weights[at] + step, bounds[at, 0]), bounds[at, 1])
        pull = np.where(x @ weights < y, _TOO_SMALL, 1.0)
    return [round(1000 * weight) for weight in weights]


def main() -> None:
    """Print the error by kind of the half that judges, as JSON lines; with `--fit`, new weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    wants = parser.parse_args()
    count = exact_counter("openai/gpt-4o")
    if count is None:
        raise SystemExit("The vocabulary of o200k_base is missing. Install litellm.")
    kinds = samples()
    if wants.fit:
        names = [name.decode() for name in (*ASCII_WEIGHTS, *SCRIPT_WEIGHTS)] + list(BLOCK_WEIGHTS)
        print(json.dumps(dict(zip(names, fitted(kinds, count), strict=True))))
        return
    for kind, (_, pieces) in kinds.items():
        real = [count(piece) for piece in pieces]
        off = [round(estimate_tokens(piece) / size - 1, 3) for piece, size in zip(pieces, real, strict=True)]
        whole = sum(map(estimate_tokens, pieces)) / sum(real) - 1
        print(json.dumps({"kind": kind, "error": round(whole, 3), "least": min(off), "most": max(off)}))


if __name__ == "__main__":
    main()
