"""search, pin, pins and unpin."""

from __future__ import annotations

from memory_service import schemas
from tests.memory_service.cli.commands import CommandLine
from tests.memory_service.cli.talks import begun, view


def test_what_was_compacted_is_found(cli: CommandLine) -> None:
    begun(cli)
    cli.ok("sessions", "compact", "support-42")
    for query, word in (("A-1002 ships", "A-1002"), ("订单 A-1002 发货", "订单 A-1002")):
        found = cli.run("sessions", "search", "support-42", query, "--json").answer(schemas.FoundMessages)
        assert word in found.results[0].text
        printed = cli.ok("sessions", "search", "support-42", query, "--limit", "1")
        assert printed.startswith(f"1. log:{found.results[0].seq}  ") and "  compacted\n" in printed
        assert word in printed and "\n2. log:" not in printed
    run = cli.run("sessions", "search", "support-42", "xylophone")
    assert (run.code, run.out, run.err) == (0, "", "nothing found\n")


def test_a_pin_stays_word_for_word_through_a_compaction(cli: CommandLine) -> None:
    begun(cli)
    pin_id = cli.ok("sessions", "pin", "support-42", "周五绝不部署。Never on Fridays.").split()[1]
    of_message = cli.run("sessions", "pin", "support-42", "--seq", "3", "--json").answer(schemas.Pin)
    assert of_message.seq == 3 and "A-1000" in of_message.text
    listed = cli.ok("sessions", "pins", "support-42").splitlines()
    assert listed[0] == f"{pin_id}  周五绝不部署。Never on Fridays."
    assert listed[1].startswith(f"{of_message.pin_id}  (log:3) 订单 A-1000")
    cli.ok("sessions", "compact", "support-42")
    assert any("周五绝不部署。Never on Fridays." in str(message["content"]) for message in view(cli))
    assert cli.ok("sessions", "unpin", "support-42", pin_id) == f"unpinned  {pin_id}\n"
    assert not any("周五绝不部署" in str(message["content"]) for message in view(cli))
    left = cli.run("sessions", "pins", "support-42", "--json").answer(schemas.Pins)
    assert [pin.pin_id for pin in left.pins] == [of_message.pin_id]
    cli.run("sessions", "unpin", "support-42", pin_id).failed_with(pin_id)
    cli.run("sessions", "pin", "support-42", "--seq", "9999").failed_with("9999")
