"""The settings: one value per table, composed here, read from four places.

Invariants: arguments win over `MEMORY_SERVICE_*`, that over `<home>/memory-service.toml`, that over the
defaults; a name that nobody knows is an error, wherever it stands; nothing here is read twice.

The variables are read here, not by `pydantic-settings`: that passes over a misspelt one without a word.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from indexer.common import lazy_regex
from indexer.stores import DEFAULT_STORE, STORES
from memory_service.config.extra_paths import (
    absolute_folder,
    by_workspace,
    read_extra_paths,
    split_entries,
)
from memory_service.config.setting_origins import SettingOrigins, lines_of_names, setting_names, shown_settings
from memory_service.errors import InvalidRequest
from memory_service.home import (
    DEFAULT_HOME,
    PREFIX,
    SETTINGS_FILE,
    WORKSPACE_NAME,
    check_format,
    home_of,
    nearest,
    shown_name,
)
from memory_service.schemas.memories import DEFAULT_WORKSPACE
from memory_service.schemas.status import SettingValue

# Name of the service's own context engine.
OWN_ENGINE = "default"
# Of a checkout; an installed package has it elsewhere, and no home looks like that.
_SAMPLE = Path(os.path.realpath(__file__)).parents[2] / "data"


def _json_table(value: object, example: str) -> object:
    """A table that the environment has as text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError(f"write it as JSON, {example}") from None


class _Table(BaseModel):
    # An error shows no value: some are secrets.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Upstream(_Table):
    """A provider.

    Attributes:
        protocol: What it speaks: "openai" is chat completions and Responses, "chat" the first alone; "litellm" is
            any provider, through that package.
        base_url: Its address, as its own clients take it; of "litellm", empty is the address of each provider.
        api_key_env: The variable of the environment that has its key; empty for the caller's own, of "litellm" for
            the variable that each provider names.
    """

    protocol: Literal["openai", "chat", "anthropic", "litellm"] = "openai"
    base_url: str = Field(default="", pattern="^(https?://.+)?$")
    api_key_env: str = ""

    @model_validator(mode="after")
    def _with_address(self) -> Upstream:
        if not self.base_url and self.protocol != "litellm":
            raise ValueError('base_url is missing: give the address, or set protocol to "litellm"')
        return self


class RankingTable(_Table):
    """How results are ordered."""

    fusion: Literal["evidence", "blend", "rrf"] = Field(
        default="evidence",
        description='"evidence" measures best; "blend" is 0.7 vector + 0.3 text; "rrf" is reciprocal rank fusion.',
    )
    recency_weight: float = Field(
        default=0.3, ge=0, le=10, description="What today's notes gain over old ones; 0 turns recency off."
    )
    half_life_days: float = Field(default=30.0, gt=0, le=36_500, description="Age at which half of that gain is left.")
    mmr_lambda: float = Field(
        default=1.0, ge=0, le=1, description="Below 1, results that repeat earlier ones move down."
    )


class RecallTable(_Table):
    """Which memories a session gets without asking."""

    min_relevance: float = Field(
        default=0.0037, ge=0, le=1, description="Nothing is recalled where no memory has this relevance; 0 is off."
    )
    min_gain: float = Field(
        default=0.001,
        ge=0,
        le=100,
        description="Least chance of an answer that a memory has to add for 100 tokens; 0 is off.",
    )


PresetName = Literal["default", "openclaw", "turns", "ponybunny", "opencode"]


class CompactionTable(_Table):
    """How sessions are compacted."""

    preset: PresetName = Field(
        default="default", description="How to compact: thresholds, what stays, how the summary is written."
    )
    model: str = Field(default="", description="litellm name of the model that writes summaries; empty is llm_model.")
    fallback: Literal["preset", "extractive", "note", "last_turns", "none"] = Field(
        default="preset",
        description='When the model fails: "extractive" writes by rules, "note" says how much was there, "last_turns" '
        'keeps those alone, "none" changes nothing and is an error.',
    )
    instructions: str = Field(default="", max_length=2_000, description="What summaries should look at.")
    identifier_policy: Literal["preserve", "strict", "anonymize", "off", "custom"] = Field(
        default="preserve",
        description='What summaries do with ids and paths: "preserve" (or "strict") copies them, "anonymize" puts '
        'labels in their place, "custom" is as the instructions say.',
    )
    max_concurrent: int = Field(default=2, ge=1, le=64, description="Compactions at the same time, of all sessions.")
    overrides: dict[str, Any] = Field(
        default={}, description='Numbers of the preset, by name: {"keep_turns": 3}; docs/sessions.md lists them.'
    )
    refuse_below_tokens: int | None = Field(
        default=None, ge=0, description="Smaller windows are refused; unset is the preset's number."
    )
    warn_below_tokens: int | None = Field(
        default=None, ge=0, description="Smaller windows are warned about; unset is the preset's number."
    )

    @field_validator("overrides", mode="before")
    @classmethod
    def _read_json(cls, value: object) -> object:
        return _json_table(value, '{"keep_turns": 3}')

    @field_validator("overrides")
    @classmethod
    def _fit_the_preset(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        # Here, as few set any, and presets bring half of the compaction.
        from memory_service.compaction.presets import PRESETS, with_overrides

        # A preset that does not exist has its own error.
        if preset := PRESETS.get(info.data.get("preset", "")):
            with_overrides(preset, value)
        return value


class PruningTable(_Table):
    """How old tool results leave the view before anything is summarised."""

    mode: Literal["preset", "off", "cache_ttl", "budget"] = Field(
        default="preset", description='"cache_ttl" prunes when the provider\'s cache is cold, "budget" by size.'
    )
    ttl_seconds: float = Field(default=300.0, ge=0, description="How long a provider keeps its prompt cache.")
    allow: tuple[str, ...] = Field(default=(), description="Tools whose results may be pruned, as globs; empty is all.")
    deny: tuple[str, ...] = Field(default=(), description="Tools whose results are never pruned, as globs.")

    @field_validator("allow", "deny", mode="before")
    @classmethod
    def _split_globs(cls, value: object) -> object:
        return tuple(glob.strip() for glob in value.split(",") if glob.strip()) if isinstance(value, str) else value


class FlushTable(_Table):
    """How memories are written before a compaction."""

    mode: Literal["auto", "agent", "model", "extractive", "off"] = Field(
        default="auto",
        description='Who finds memories: the agent, "model" (llm_model) or rules; "auto" is the model if there is one.',
    )
    soft_tokens: int | None = Field(
        default=None, ge=0, description="Flush so many tokens before a compaction is due; unset is the preset's number."
    )
    force_bytes: int = Field(
        default=2 * 1024 * 1024, ge=0, description="Flush when the log has grown by so much since the last; 0 is never."
    )
    prompt: str = Field(
        default="", max_length=4_000, description="What the agent is asked; empty is the built-in text."
    )
    system_prompt: str = Field(default="", max_length=4_000, description="The system prompt beside it.")


class GatewayTable(_Table):
    """Where calls of providers' clients are sent on to."""

    upstreams: dict[str, Upstream] = Field(
        default={},
        description='Providers by name, {"openai": {"base_url": "https://api.openai.com/v1", "api_key_env": '
        '"OPENAI_API_KEY"}}; docs/gateway.md.',
    )
    provider_compaction: Literal["pass", "ours"] = Field(
        default="pass",
        description='Compaction that a client asks Anthropic for: "pass" sends it on, "ours" is made here.',
    )

    @field_validator("upstreams", mode="before")
    @classmethod
    def _read_upstreams(cls, value: object) -> object:
        return _json_table(value, '{"name": {"base_url": "https://…"}}')

    @field_validator("upstreams")
    @classmethod
    def _known_names(cls, value: dict[str, Upstream]) -> dict[str, Upstream]:
        if wrong := next((name for name in value if not WORKSPACE_NAME.fullmatch(name)), None):
            raise ValueError(f"{wrong!r} is no name of an upstream: use a-z, 0-9, '.', '_' and '-'")
        return value


class Settings(_Table):
    """Everything that can be set."""

    _origins: SettingOrigins = PrivateAttr(default_factory=SettingOrigins)

    home: Path = Field(default=DEFAULT_HOME, description="Folder of the workspaces.")
    host: str = Field(
        default="127.0.0.1", description="Address that the server listens on; others than loopback need api_keys."
    )
    port: int = Field(default=8765, ge=0, le=65_535, description="Port that the server listens on; 0 picks a free one.")
    api_keys: dict[str, str] = Field(
        default={}, description='Keys and their workspaces, "key:workspace,key2:*"; * is all of them.'
    )
    timezone: str = Field(
        default="local", description='Decides which day "today" is: an IANA name, or "local" for the machine\'s.'
    )
    embedding_model: str = Field(
        default="auto",
        description=(
            '"auto" (one of the bundled two, by what the workspace is written in), "minilm", "multilingual-e5-small", '
            '"onnx/NAME", "sentence-transformers/NAME", "litellm/NAME" or "none" (words alone).'
        ),
    )
    embedding_api_base: str = Field(
        default="", description="Address of the embedding and rerank models of litellm, if not the provider's own."
    )
    rerank_model: str = Field(
        default="",
        description='Reads the best results again: "onnx/NAME", "sentence-transformers/NAME" or "litellm/NAME".',
    )
    max_file_bytes: int = Field(
        default=8 * 1024 * 1024, ge=1024, description="Larger memory files are refused, by name."
    )
    extra_paths: dict[str, tuple[str, ...]] = Field(
        default={},
        description='Folders indexed too, "~/notes;docs=~/project/docs::*.md,!drafts/"; a table names workspaces.',
    )
    database_url: SecretStr = Field(
        default=SecretStr(""),
        description='PostgreSQL in the place of files, for several servers: "postgresql://user:password@host/name".',
    )
    database_direct_url: SecretStr = Field(
        default=SecretStr(""), description="The server's own address, if database_url is that of a pooler."
    )
    max_body_bytes: int = Field(default=64 * 1024 * 1024, ge=1024, description="Larger HTTP bodies are refused.")
    store: str = Field(default=DEFAULT_STORE, description="Where indexes are kept.")
    receipt_days: int = Field(default=30, ge=1, le=36_500, description="How long receipts are kept.")
    ranking: RankingTable = RankingTable()
    recall: RecallTable = RecallTable()
    llm_model: str = Field(default="", description="litellm name of a model; unset means that no model is ever called.")
    llm_api_base: str = Field(default="", description="Address of the model's API, if not the provider's own.")
    llm_fallback_model: tuple[str, ...] = Field(
        default=(), description='Asked when llm_model cannot do it, one after the other: "openai/gpt-4o-mini,ollama/x".'
    )
    llm_timeout_seconds: float = Field(default=300.0, gt=0, le=3_600, description="For all calls of one compaction.")
    context_window: int = Field(
        default=0, ge=0, description="Tokens of the agent's model; 0 is by the name of the model, else 128,000."
    )
    context_windows: dict[str, int] = Field(default={}, description='Windows by model: "gpt-4o:128000,my-model:32768".')
    pin_rules: bool = Field(
        default=False, description="Coding agents: pin AGENTS.md and CLAUDE.md, and pin them anew when they change."
    )
    host_folders: tuple[Path, ...] = Field(
        default=(),
        description='Coding agents: folders that hooks over HTTP may read, too: "/srv/agents;~/talks".',
    )
    context_engine: str = Field(default=OWN_ENGINE, description="Who assembles contexts; others come as plugins.")
    compaction: CompactionTable = CompactionTable()
    pruning: PruningTable = PruningTable()
    flush: FlushTable = FlushTable()
    gateway: GatewayTable = GatewayTable()

    @field_validator("api_keys", mode="before")
    @classmethod
    def _split_keys(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [pair.strip().rpartition(":") for pair in value.split(",") if pair.strip()]
        if any(not key or not workspace for key, _, workspace in pairs):
            raise ValueError('write it as "key:workspace,key2:*"')
        places: dict[str, int] = {}
        for place, (key, _, _) in enumerate(pairs, 1):
            if (first := places.setdefault(key, place)) != place:
                raise ValueError(f"its entries {first} and {place} have the same key: give each workspace its own")
        return {key: workspace for key, _, workspace in pairs}

    @field_validator("api_keys")
    @classmethod
    def _possible_workspaces(cls, value: dict[str, str]) -> dict[str, str]:
        for place, workspace in enumerate(value.values(), 1):
            if workspace != "*" and not WORKSPACE_NAME.fullmatch(workspace):
                raise ValueError(
                    f"its entry {place} is for {shown_name(workspace)}, which is no name of a workspace: "
                    "use a-z, 0-9, '.', '_' and '-', or * for all of them"
                )
        return value

    @field_validator("llm_fallback_model", mode="before")
    @classmethod
    def _split_models(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value

    @field_validator("context_windows", mode="before")
    @classmethod
    def _split_windows(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [pair.strip().rpartition(":") for pair in value.split(",") if pair.strip()]
        if any(not model or not window.isdigit() for model, _, window in pairs):
            raise ValueError('write it as "gpt-4o:128000,my-model:32768"')
        return {model: int(window) for model, _, window in pairs}

    @field_validator("host_folders", mode="before")
    @classmethod
    def _split_folders(cls, value: object) -> object:
        entries = value if isinstance(value, tuple) else split_entries(value)
        return (
            tuple(absolute_folder(str(entry), str(entry)) for entry in entries)
            if isinstance(entries, Sequence)
            else entries
        )

    @field_validator("extra_paths", mode="before")
    @classmethod
    def _by_workspace(cls, value: object) -> object:
        return by_workspace(value, DEFAULT_WORKSPACE)

    @field_validator("extra_paths")
    @classmethod
    def _readable_paths(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for entries in value.values():
            read_extra_paths(entries)
        return value

    @field_validator("database_url", "database_direct_url")
    @classmethod
    def _is_of_a_database(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        if not (address := value.get_secret_value()):
            return value
        from indexer.stores import is_address

        if not is_address(address):
            raise ValueError(
                'write it as "postgresql://user:password@host:5432/name", and what a password has of "@", "/", "?", '
                '"%" and blanks as %40, %2F, %3F, %25 and %20'
            )
        if info.field_name == "database_url" and info.data.get("extra_paths"):
            raise ValueError(
                "extra_paths names folders of this machine, which other servers on the database do not have. Unset it, "
                "and bring these notes into a workspace with memory-service sync"
            )
        database = info.data.get("database_url")
        if info.field_name == "database_direct_url" and database is not None and not database.get_secret_value():
            raise ValueError("it is beside database_url, which is not set")
        return value

    @field_validator("store")
    @classmethod
    def _known_store(cls, value: str) -> str:
        if value not in STORES:
            raise ValueError(f"there is no store {value!r}: write {' or '.join(STORES)}")
        return value

    @field_validator("timezone")
    @classmethod
    def _known_timezone(cls, value: str) -> str:
        if value != "local":
            try:
                ZoneInfo(value)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                raise ValueError('give an IANA name such as "Europe/Berlin", or "local"') from None
        return value

    def now(self) -> dt.datetime:
        """The present moment in the configured timezone."""
        return dt.datetime.now(self.zone).astimezone(self.zone)

    @property
    def place(self) -> str:
        """The home, or the database in its place without user, password and options; for messages."""
        if not (address := self.database_url.get_secret_value()):
            return str(self.home)
        from indexer.stores import PostgresDatabase

        return f"the database {PostgresDatabase(address).place}"

    def list_values(self) -> list[SettingValue]:
        """All settings, each with its value as it may be shown, and where that is from."""
        return shown_settings(self, self._origins)

    @property
    def zone(self) -> dt.tzinfo | None:
        """The configured timezone; None for the machine's own."""
        return None if self.timezone == "local" else ZoneInfo(self.timezone)


def load_settings(**arguments: Any) -> Settings:
    """Read the settings.

    Args:
        arguments: Values that win over all others; those that are None do not count.

    Raises:
        InvalidRequest: A name is unknown or a value cannot be used; the message names its place.
    """
    given_fields = {name: value for name, value in arguments.items() if value is not None}
    environment = _environment()
    if os.environ.get(f"{PREFIX}URL") and not given_fields.get("home"):
        raise InvalidRequest(
            f"{PREFIX}URL names a server, and this works on the files of a home. Unset it, or name the home (--home)."
        )
    home = home_of(given_fields.get("home"))
    if os.path.realpath(home) == str(_SAMPLE):
        raise InvalidRequest(
            f"{home} is the sample of this checkout, which is only read. Work on a copy of it: "
            "memory-service demo --keep FOLDER, and then --home FOLDER."
        )
    check_format(home)
    text = _file_text(home / SETTINGS_FILE)
    file_fields = _parse_fields(home / SETTINGS_FILE, text)
    values = _merge_tables(_merge_tables(file_fields, environment), given_fields)
    try:
        settings = Settings(**{**values, "home": home})
    except ValidationError as error:
        raise InvalidRequest(_explain(error)) from None
    settings._origins = SettingOrigins(
        file=lines_of_names(text, setting_names(file_fields, _TABLES)),
        file_name=str(home / SETTINGS_FILE),
        environment=frozenset(setting_names(environment, _TABLES)),
        arguments=frozenset(setting_names(given_fields, _TABLES)),
    )
    return settings


# What Kubernetes gives every container for a Service whose name begins with `memory-service`.
# Source: Kubernetes, "Service", "Environment variables"; Docker, "Legacy container links".
_OF_SERVICES = (
    (lazy_regex(r"(\w+_)?(SERVICE_HOST|PORT_\d+_(TCP|UDP|SCTP)_ADDR)"), lazy_regex(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*")),
    (lazy_regex(r"(\w+_)?SERVICE_PORT(_\w+)?|(\w+_)?PORT_\d+_(TCP|UDP|SCTP)_PORT"), lazy_regex(r"\d+")),
    (lazy_regex(r"(\w+_)?PORT(_\d+_(TCP|UDP|SCTP))?"), lazy_regex(r"(tcp|udp|sctp)://\S+:\d+")),
    (lazy_regex(r"(\w+_)?PORT_\d+_(TCP|UDP|SCTP)_PROTO"), lazy_regex(r"tcp|udp|sctp")),
)  # fmt: skip


def _is_of_a_service(name: str, value: str) -> bool:
    """True for a variable, without our prefix, that has the name and the value of one that Kubernetes makes."""
    return any(names.fullmatch(name) and values.fullmatch(value) for names, values in _OF_SERVICES)


def _environment() -> dict[str, Any]:
    """Values from the environment: MEMORY_SERVICE_RANKING__FUSION is ranking.fusion."""
    values: dict[str, Any] = {}
    for name, value in os.environ.items():
        if name.startswith(PREFIX) and not _is_of_a_service(name.removeprefix(PREFIX), value):
            *tables, key = name.removeprefix(PREFIX).lower().split("__")
            place = values
            for table in tables:
                place = place.setdefault(table, {})
                if not isinstance(place, dict):
                    raise InvalidRequest(f"{PREFIX}{table.upper()} is a table. Set {name} alone.")
            place[key] = value
    # These are read by the command line alone.
    return {name: value for name, value in values.items() if name not in ("workspace", "url", "api_key")}


def _file_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InvalidRequest:
    return InvalidRequest(f"The settings file {path} cannot be read ({error}). Mend or remove it.")


def _parse_fields(path: Path, text: str) -> dict[str, Any]:
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unreadable(path, error) from None
    if "home" in fields:
        raise InvalidRequest(f"The settings file {path} cannot set 'home': it lies there. Use --home or {PREFIX}HOME.")
    return fields


def _merge_tables(low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    merged_low = dict(low)
    for name, value in high.items():
        below = merged_low.get(name)
        merged_low[name] = _merge_tables(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged_low


_TABLES: dict[str, type[BaseModel]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}


def _setting_names() -> Iterator[tuple[str, str]]:
    """The table and the name of each setting, and of each table."""
    for name in Settings.model_fields:
        yield "", name
        if table := _TABLES.get(name):
            yield from ((name, inner) for inner in table.model_fields)


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    # What stands below api_keys is a key.
    name = ".".join(str(part) for part in first["loc"][: 1 if first["loc"][0] == "api_keys" else None])
    if first["type"] == "extra_forbidden":
        table, _, key = name.rpartition(".")
        near = nearest(key, (known_text for where, known_text in _setting_names() if where == table))
        return f"There is no setting {name!r}.{near or ' docs/settings.md lists all of them.'}"
    return f"The setting {name!r} cannot be used: {first['msg'].removeprefix('Value error, ').removesuffix('.')}."
