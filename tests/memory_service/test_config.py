from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from memory_service.config import (
    CompactionTable,
    FlushTable,
    GatewayTable,
    PruningTable,
    RankingTable,
    RecallTable,
    Settings,
    load_settings,
)
from memory_service.errors import InvalidRequest
from memory_service.home import DEFAULT_HOME, PREFIX, SETTINGS_FILE
from memory_service.service import MemoryService
from tests.pages import code, table


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)


def names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from names(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def refused(**arguments: object) -> str:
    with pytest.raises(InvalidRequest) as raised:
        load_settings(**arguments)
    return str(raised.value)


def test_arguments_win_over_environment_over_file_over_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_settings(home=tmp_path).port == 8765
    (tmp_path / SETTINGS_FILE).write_text("port = 1001\nhost = '::1'\nreceipt_days = 5\n")
    assert load_settings(home=tmp_path).port == 1001
    monkeypatch.setenv("MEMORY_SERVICE_PORT", "1002")
    monkeypatch.setenv("MEMORY_SERVICE_HOST", "localhost")
    assert load_settings(home=tmp_path).port == 1002
    loaded = load_settings(home=tmp_path, port=1003, host=None)
    assert (loaded.port, loaded.host, loaded.receipt_days) == (1003, "localhost", 5)


def test_tables_are_merged_key_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / SETTINGS_FILE).write_text('[ranking]\nfusion = "rrf"\nhalf_life_days = 7\nmmr_lambda = 0.5\n')
    monkeypatch.setenv("MEMORY_SERVICE_RANKING__FUSION", "blend")
    monkeypatch.setenv("MEMORY_SERVICE_RANKING__HALF_LIFE_DAYS", "9")
    ranking = load_settings(home=tmp_path, ranking={"half_life_days": 11.0}).ranking
    assert (ranking.fusion, ranking.half_life_days, ranking.mmr_lambda) == ("blend", 11.0, 0.5)
    assert ranking.recency_weight == Settings().ranking.recency_weight


def test_the_home_is_where_it_is_said_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings().home == DEFAULT_HOME.expanduser()
    monkeypatch.setenv("MEMORY_SERVICE_HOME", str(tmp_path / "of-environment"))
    (tmp_path / "of-environment").mkdir()
    (tmp_path / "of-environment" / SETTINGS_FILE).write_text("port = 7\n")
    assert load_settings().home == tmp_path / "of-environment"
    assert load_settings().port == 7, "the file of that home is read"
    assert load_settings(home=tmp_path / "given").home == tmp_path / "given"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_settings(home="~/notes").home == tmp_path / "notes"
    assert not (tmp_path / "given").exists()


@pytest.mark.parametrize("name", ["colour", "ranking.colour"])
def test_an_unknown_name_is_named_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    table, _, key = name.rpartition(".")
    assert refused(home=tmp_path, **({table: {key: 1}} if table else {key: 1})) == (
        f"There is no setting '{name}'. docs/settings.md lists all of them."
    )
    (tmp_path / SETTINGS_FILE).write_text(f"[{table}]\n{key} = 1\n" if table else f"{key} = 1\n")
    assert f"'{name}'" in refused(home=tmp_path)
    (tmp_path / SETTINGS_FILE).unlink()
    monkeypatch.setenv(PREFIX + name.upper().replace(".", "__"), "1")
    assert f"'{name}'" in refused(home=tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("port", "many", "'port'"),
        ("port", "65536", "'port'"),
        ("receipt_days", "0", "'receipt_days'"),
        ("store", "postgres", "there is no store 'postgres': write sqlite"),
        ("max_file_bytes", "12", "'max_file_bytes'"),
        ("timezone", "Mars/Olympus", '"Europe/Berlin", or "local"'),
        ("timezone", "../../etc/passwd", '"Europe/Berlin", or "local"'),
        ("timezone", "Europe", '"Europe/Berlin", or "local"'),
        ("timezone", "", '"Europe/Berlin", or "local"'),
        ("api_keys", "secret", '"key:workspace,key2:*"'),
        ("api_keys", ":default", '"key:workspace,key2:*"'),
        ("api_keys", "secret:", '"key:workspace,key2:*"'),
        ("ranking__fusion", "magic", "'ranking.fusion'"),
        ("ranking__mmr_lambda", "1.5", "'ranking.mmr_lambda'"),
        ("ranking__half_life_days", "0", "'ranking.half_life_days'"),
        ("ranking", "evidence", "'ranking'"),
    ],
)
def test_a_value_that_cannot_be_used_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(PREFIX + name.upper(), value)
    message = refused(home=tmp_path)
    assert told in message and "cannot be used" in message
    assert "secret" not in message


def test_a_table_that_is_set_as_a_whole_and_in_part_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_SERVICE_RANKING", "evidence")
    monkeypatch.setenv("MEMORY_SERVICE_RANKING__FUSION", "blend")
    assert refused(home=tmp_path) == "MEMORY_SERVICE_RANKING is a table. Set MEMORY_SERVICE_RANKING__FUSION alone."


@pytest.mark.parametrize("content", [b"port = ", b"port = 1\nport = 2\n", b"\xff\xfe", b"[ranking\n"])
def test_a_settings_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SETTINGS_FILE).write_bytes(content)
    message = refused(home=tmp_path)
    assert str(tmp_path / SETTINGS_FILE) in message and message.endswith("Mend or remove it.")


def test_a_folder_in_place_of_the_settings_file_is_named(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).mkdir()
    assert str(tmp_path / SETTINGS_FILE) in refused(home=tmp_path)


def test_keys_and_their_workspaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_SERVICE_API_KEYS", " one:default , sk:with:colons:team-a,two:*, ")
    expected = {"one": "default", "sk:with:colons": "team-a", "two": "*"}
    assert load_settings(home=tmp_path).api_keys == expected
    monkeypatch.delenv("MEMORY_SERVICE_API_KEYS")
    (tmp_path / SETTINGS_FILE).write_text('api_keys = {one = "default", "sk:with:colons" = "team-a", two = "*"}\n')
    assert load_settings(home=tmp_path).api_keys == expected
    assert load_settings(home=tmp_path, api_keys="").api_keys == {}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("secret1:team,secret1:anna", "entries 1 and 2 have the same key"),
        ("secret1:team,secret2:*, secret1:team", "entries 1 and 3 have the same key"),
        ("secret1:a,secret2:Team", "entry 2 is for 'Team', which is no name of a workspace"),
        ("secret1:../a", "entry 1 is for '../a', which is no name of a workspace"),
        ("secret1:**", "entry 1 is for '**', which is no name of a workspace"),
    ],
)
def test_keys_that_are_good_for_nothing_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv("MEMORY_SERVICE_API_KEYS", value)
    message = refused(home=tmp_path)
    assert told in message and "secret" not in message
    monkeypatch.delenv("MEMORY_SERVICE_API_KEYS")
    if "same key" not in told:
        pairs = (pair.strip().split(":") for pair in value.split(","))
        table = ", ".join(f'{key} = "{workspace}"' for key, workspace in pairs)
        (tmp_path / SETTINGS_FILE).write_text(f"api_keys = {{{table}}}\n")
        assert told in refused(home=tmp_path)


# As a pod has them beside a Service `memory-service` with a named port, one of IPv6 and UDP, and `memory-service-db`.
OF_KUBERNETES = {
    "PORT": "tcp://10.0.0.1:8765",
    "SERVICE_HOST": "10.0.0.1",
    "SERVICE_PORT": "8765",
    "SERVICE_PORT_HTTP": "8765",
    "PORT_8765_TCP": "tcp://10.0.0.1:8765",
    "PORT_8765_TCP_ADDR": "10.0.0.1",
    "PORT_8765_TCP_PORT": "8765",
    "PORT_8765_TCP_PROTO": "tcp",
    "PORT_53_UDP": "udp://[fd00::1]:53",
    "PORT_53_UDP_ADDR": "fd00::1",
    "PORT_53_UDP_PROTO": "udp",
    "DB_SERVICE_HOST": "10.0.0.2",
    "DB_SERVICE_PORT_PG_MAIN": "5432",
    "DB_PORT": "tcp://10.0.0.2:5432",
    "DB_PORT_5432_TCP_ADDR": "10.0.0.2",
}


def test_variables_that_kubernetes_makes_are_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OF_KUBERNETES.items():
        monkeypatch.setenv(PREFIX + name, value)
    monkeypatch.setenv("MEMORY_SERVICE_HOST", "0.0.0.0")
    loaded = load_settings(home=tmp_path)
    assert (loaded.host, loaded.port) == ("0.0.0.0", 8765)
    (tmp_path / SETTINGS_FILE).write_text("port = 9000\n")
    assert load_settings(home=tmp_path).port == 9000


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PORT", "10.0.0.1:8765", "'port'"),
        ("PORT", "http://10.0.0.1:8765", "'port'"),
        ("SERVICE_HOST", "localhost", "no setting 'service_host'"),
        ("SERVICE_PORT", "http", "no setting 'service_port'"),
        ("PORTS", "8765", "no setting 'ports'"),
        ("PORT_HTTP", "8765", "no setting 'port_http'"),
        ("SERVICE_HOSTS", "10.0.0.1", "no setting 'service_hosts'"),
    ],
)
def test_what_only_looks_like_one_of_them_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    assert told in refused(home=tmp_path)


def test_a_key_stands_in_no_message(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_text("api_keys = {sk-secret = 5}\n")
    message = refused(home=tmp_path)
    assert "'api_keys'" in message and "secret" not in message


def test_what_the_command_line_alone_reads_is_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "WORKSPACE", "x")
    assert load_settings(home=tmp_path) == Settings(home=tmp_path)


def test_the_timezone_decides_the_day(tmp_path: Path) -> None:
    # 26 hours apart: at any moment it is another day in the one than in the other.
    days = set()
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12"):
        settings = load_settings(home=tmp_path / zone.partition("/")[2], timezone=zone, embedding_model="none")
        now = settings.now()
        assert now.utcoffset() == dt.datetime.now(ZoneInfo(zone)).utcoffset()
        with MemoryService(settings) as service:
            before = settings.now().date()
            path = service.remember("default", "x").path
            assert path in {f"memory/{day}.md" for day in (before, settings.now().date())}
        days.add(path)
    assert len(days) == 2
    assert Settings().now().tzinfo is not None


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1
    with pytest.raises(ValidationError):
        Settings().ranking.fusion = "rrf"


def test_a_password_of_a_database_stands_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://eve:s3cret@db.example.org/memory"
    monkeypatch.setenv(PREFIX + "DATABASE_URL", address)
    settings = load_settings(home=tmp_path)
    assert settings.database_url.get_secret_value() == address
    for shown in (repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump())):
        assert "s3cret" not in shown
    for wrong in (
        "mysql://eve:s3cret@db/x",
        "postgresql://eve:s3cret@db/a b",
        "s3cret",
        "host=db password=s3cret",
        # A part of the password would be taken for a host, a port or a name.
        "postgresql://eve:s3/cret@db/x",
        "postgresql://eve:s3?cret@db/x",
        "postgresql://eve:s3@cret@db/x",
        "postgresql://eve:s3%cret@db/x",
        "postgresql://eve:s3cret",
        "postgresql://db?password=s3@cret",
    ):
        message = refused(home=tmp_path, database_url=wrong)
        assert "postgresql://user:password@host:5432/name" in message and "s3" not in message and "cret" not in message
        with pytest.raises(ValidationError) as raised:
            Settings(database_url=SecretStr(wrong))
        assert "s3" not in str(raised.value) and "cret" not in str(raised.value)


def test_a_database_has_no_folders_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "postgresql://db.example.org/memory"
    message = refused(home=tmp_path, database_url=address, extra_paths="~/notes")
    assert "folders of this machine" in message and "memory-service sync" in message
    assert "database_url, which is not set" in refused(home=tmp_path, database_direct_url=address)
    monkeypatch.setenv(PREFIX + "DATABASE_URL", address)
    assert load_settings(home=tmp_path, database_direct_url=address).database_direct_url.get_secret_value() == address


def test_the_page_of_settings_lists_all_of_them() -> None:
    listed = [name for cells in table("docs/settings.md", "setting") for name in code(cells[0])]
    assert sorted(listed) == sorted(names(Settings))
    assert len(listed) <= 50


def test_every_setting_says_what_it_is_for() -> None:
    tables: dict[str, type[BaseModel]] = {
        "ranking": RankingTable,
        "recall": RecallTable,
        "compaction": CompactionTable,
        "pruning": PruningTable,
        "flush": FlushTable,
        "gateway": GatewayTable,
    }
    assert all(field.description for name, field in Settings.model_fields.items() if name not in tables)
    assert all(field.description for table in tables.values() for field in table.model_fields.values())


def test_numbers_of_the_preset_are_set_in_the_file_and_as_json_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / SETTINGS_FILE).write_text("[compaction]\npreset = 'turns'\n[compaction.overrides]\nkeep_turns = 3\n")
    assert load_settings(home=tmp_path).compaction.overrides == {"keep_turns": 3}
    monkeypatch.setenv("MEMORY_SERVICE_COMPACTION__OVERRIDES", '{"target_share": 0.4}')
    assert load_settings(home=tmp_path).compaction.overrides == {"target_share": 0.4}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ('{"keep_turns": -1}', "keep_turns is -1"),
        ('{"keep_colour": 1}', "'keep_colour' is no number of a preset"),
        ('{"target_share": 0.95}', "has to be less than trigger_share"),
        ('{"target_share": NaN}', "target_share is nan"),
        ("keep_turns=3", "write it as JSON"),
        ("[1]", "dictionary"),
    ],
)
def test_numbers_that_make_no_sense_are_an_error_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv("MEMORY_SERVICE_COMPACTION__OVERRIDES", value)
    message = refused(home=tmp_path)
    assert message.startswith("The setting 'compaction.overrides' cannot be used: ") and told in message


def test_each_setting_says_where_it_is_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """# mine
timezone = "UTC"
ranking.half_life_days = 12.5

[compaction]
# the preset
preset = "turns"

[ recall ]
"min_gain"=0.5

[context_windows]
gpt-4o = 1000
"""
    (tmp_path / SETTINGS_FILE).write_text(text, "utf-8")
    monkeypatch.setenv(f"{PREFIX}RECALL__MIN_GAIN", "0.25")
    monkeypatch.setenv(f"{PREFIX}CONTEXT_WINDOW", "9000")
    loaded = load_settings(home=tmp_path, port=99)
    found = {setting.name: (setting.value, setting.origin, setting.place) for setting in loaded.list_values()}
    assert list(found) == list(names(Settings))
    file = tmp_path / SETTINGS_FILE
    assert found["timezone"] == ("UTC", "file", f"{file}:2")
    assert found["ranking.half_life_days"] == ("12.5", "file", f"{file}:3")
    assert found["compaction.preset"] == ("turns", "file", f"{file}:7")
    assert found["context_windows"] == ('{"gpt-4o": 1000}', "file", f"{file}:12")
    assert found["recall.min_gain"] == ("0.25", "environment", f"{PREFIX}RECALL__MIN_GAIN")
    assert found["context_window"] == ("9000", "environment", f"{PREFIX}CONTEXT_WINDOW")
    assert found["port"] == ("99", "argument", "")
    assert found["ranking.fusion"] == ("evidence", "default", "")
    others = {setting.name: setting.origin for setting in Settings(home=tmp_path, port=99).list_values()}
    assert (others["port"], others["host"]) == ("argument", "default")
    assert all(setting.description for setting in loaded.list_values() if "." not in setting.name)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    upstream = {"base_url": "https://ana:hunter2@example.org/v1?token=hunter2", "api_key_env": "OPENAI_API_KEY"}
    loaded = load_settings(
        home=tmp_path,
        api_keys={"hunter2": "team", "hunter2-too": "*"},
        database_url="postgresql://ana:hunter2@db/name",
        llm_api_base="http://hunter2@example.org/v1",
        embedding_api_base="http://example.org/v1?key=hunter2",
        gateway={"upstreams": {"openai": upstream}},
    )
    found = {setting.name: setting.value for setting in loaded.list_values()}
    assert "hunter2" not in str(found)
    assert found["api_keys"] == "…:team, …:*"
    assert (found["database_url"], found["database_direct_url"]) == ("…", "")
    assert found["llm_api_base"] == "http://…@example.org/v1"
    assert found["embedding_api_base"] == "http://example.org/v1?…"
    assert '"api_key_env": "OPENAI_API_KEY"' in found["gateway.upstreams"]
