"""The export, read by the Slack source, is the very stream that `generate` gives."""

from engine.model import SourceReport
from engine.sources.roles import RoleRule, RoleRules
from engine.sources.slack import SlackExport
from engine.synth import generate
from engine.synth.people import CLIENT_DOMAINS, TEAM_DOMAIN
from engine.text import fold
from tests.engine.synth.written import Written


def _source(written: Written) -> SlackExport:
    roles = {
        "client": RoleRule(email_domain=CLIENT_DOMAINS),
        "teammate": RoleRule(email_domain=(TEAM_DOMAIN,)),
    }
    return SlackExport(written.folder / "export", RoleRules(roles))


def test_the_export_reads_as_what_was_generated(written: Written) -> None:
    report = SourceReport()
    read = {m.message_id: m for m in _source(written).messages(report)}
    assert read == {m.message_id: m for m in generate(2_000, 1)}
    assert (report.read, report.yielded, dict(report.skipped), report.problems) == (2_000, 2_000, {}, [])


def test_the_export_holds_the_counts_of_the_answer_key(written: Written) -> None:
    messages = [m for m in _source(written).messages(SourceReport()) if m.kind not in ("activity", "tombstone")]
    about = [m for m in messages if "openai" in fold(m.body)]
    key = written.key
    asked = [m for m in about if m.from_role == "client"]
    assert sorted(m.message_id for m in asked) == sorted(key.story("openai_from_clients").message_ids)
    assert sum("client" in fold(m.body) for m in about) == key.story("openai_and_client").counts["matches"]
    broad = [m for m in messages if "deployment" in fold(m.body)]
    assert key.story("broad").counts == {
        "matches": len(broad),
        "conversations": len({m.conversation_id for m in broad}),
        "body_bytes": sum(len(m.body.encode()) for m in broad),
    }
