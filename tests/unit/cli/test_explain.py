"""`hermes explain`: the gateway's own rules and bounds, printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.app import settings
from hermes.app.loading import load
from hermes.cli import explain_config, explain_error, explain_policy
from hermes.cli.invocation import Invocation
from hermes.config.environment import Environment
from hermes.core.delivery import DeliveryReason
from hermes.core.failures import Reason
from hermes.policy.classify import classify, facts_from_record
from hermes.policy.cures import CURES
from hermes.policy.recovery import Wait, bound, initial, plan

CORPUS = Path(__file__).resolve().parents[2] / "data" / "errors"
FIELDS = ["id", "reason", "detail", "retryable", "action", "rule"]
PROGRAM = Invocation(json=True)

CONFIG = """
model: {provider: main, model: m}
providers:
  main: {kind: openai, api_key: "plain-secret-1", base_url: "http://127.0.0.1:1/v1"}
  spare: {kind: anthropic, api_key: "${SPARE_KEY}"}
fallback_providers:
  - {provider: spare, model: n}
agent: {api_max_retries: 2}
platforms:
  telegram: {enabled: true, token: "1234567:plain-secret-3", allowed_users: [7]}
mcp_servers:
  one: {command: tool, args: ["${ARG}"], env: {KEY: plain-secret-4}}
"""
VARIABLES = {"SPARE_KEY": "plain-secret-5", "ARG": "plain-secret-6", "HERMES_BIND": "127.0.0.1:1234"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG, "utf-8")
    file.chmod(0o600)
    return file


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment.of({**VARIABLES, "HERMES_HOME": str(tmp_path)})


@pytest.mark.parametrize(("name", "platform"), [("provider.jsonl", False), ("platform.jsonl", True)])
def test_each_line_of_the_corpus_has_its_answer_in_order(
    name: str, platform: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain_error.explain_file(CORPUS / name, platform=platform, invocation=PROGRAM) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    records = [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines() if line.strip()]
    assert [answer["id"] for answer in answers] == [record["id"] for record in records]
    reasons = set(DeliveryReason if platform else Reason)
    for answer in answers:
        assert list(answer) == FIELDS
        assert answer["reason"] in reasons
        assert isinstance(answer["retryable"], bool)
        assert answer["action"]
        assert answer["rule"]


def test_lines_that_are_no_object_are_told_and_the_others_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "errors.jsonl"
    file.write_bytes(b'{"id": 1, "status": 429}\n[]\n\nnonsense \xff\n{"id": 2, "status": 503}\n')
    assert explain_error.explain_file(file, platform=False, invocation=PROGRAM) == 1
    said = capsys.readouterr()
    assert [json.loads(line)["id"] for line in said.out.splitlines()] == [1, 2]
    assert [line.split(":")[-3:-1] for line in said.err.splitlines()] == [
        ["2", " no JSON object; allowed"],
        ["4", " no JSON object; allowed"],
    ]


@pytest.mark.parametrize(
    ("platform", "record", "action"),
    [
        (False, {"status": 429}, "wait"),
        (False, {"status": 401}, "refresh_credential"),
        (False, {"status": 404}, "switch_target"),
        (True, {"provider": "telegram", "status": 429}, "send_again"),
        (True, {"provider": "telegram", "status": 403}, "bury"),
        (True, {"provider": "telegram", "status": 401}, "wait_link"),
    ],
)
def test_the_action_is_what_the_gateway_would_do(
    platform: bool, record: Mapping[str, object], action: str
) -> None:
    assert explain_error.explain(record, platform=platform)["action"] == action


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(explain_error.Unreadable, match="cannot be read: No such file"):
        explain_error.explain_file(tmp_path / "none", platform=False, invocation=PROGRAM)


def test_a_body_that_is_json_is_read_as_such() -> None:
    assert explain_error.record("openai", 400, None, '{"a": 1}')["body"] == {"a": 1}
    assert explain_error.record("openai", 400, None, "plain")["body"] == "plain"


def test_the_printed_bounds_are_those_the_planner_obeys(environment: Environment, file: Path) -> None:
    config = load(environment, file).config
    policy = settings.recovery_policy(config, environment.variables)
    told = explain_policy.as_dict(policy, config)
    assert told["most_calls"] == bound(policy)
    assert [target.name for target in policy.targets] == ["main/m", "spare/n"]
    waits = told["waits"]
    assert isinstance(waits, list)
    assert len(waits) == told["retries_per_target"] == 2
    facts, context = facts_from_record({"status": 503})
    verdict = classify(facts, context)
    for u in (0.0, 0.5, 0.999):
        state = initial(policy, deadline=1e9)
        for low, high in waits:
            state, step = plan(policy, state, verdict, now=0.0, u=u)
            assert isinstance(step, Wait)
            assert low <= step.seconds <= high


def test_every_cure_is_printed(environment: Environment, file: Path) -> None:
    config = load(environment, file).config
    policy = settings.recovery_policy(config, environment.variables)
    cures = explain_policy.as_dict(policy, config)["cures"]
    assert isinstance(cures, dict)
    assert len(cures) == len(CURES)
    assert set(cures) >= {"context_overflow", "billing/affordable"}


KEYED = """
model: {{provider: main, model: m}}
providers:
  main: {{kind: openai, base_url: "http://127.0.0.1:1/v1", {main}}}
  spare: {{kind: openai, base_url: "{url}", {spare}}}
{fallback}
"""


def _page(environment: Environment, file: Path, text: str) -> tuple[dict[str, object], str]:
    """What a program is told, and what a person."""
    file.write_text(text, "utf-8")
    config = load(environment, file).config
    policy = settings.recovery_policy(config, environment.variables)
    sections = (
        explain_policy._targets(policy), explain_policy._dead_ends(policy), explain_policy._calls(policy, config),
        explain_policy._cures(policy),
    )  # fmt: skip
    shown = "\n".join(f"{name} {said}" for section in sections for name, said in section.rows)
    return explain_policy.as_dict(policy, config), shown


FALLBACK = "fallback_providers: [{provider: spare, model: n}]"


@pytest.mark.parametrize(
    ("main", "spare", "url", "fallback", "most", "says"),
    [
        ("api_key: sk-one", "api_key: sk-two", "http://127.0.0.1:2/v1", "", 0, "there is no fallback"),
        ("api_key: sk-one", "api_key: sk-two", "http://127.0.0.1:2/v1", FALLBACK, 0, "main/m has one key"),
        ("api_keys: [sk-one, sk-two, sk-three]", "api_key: sk-two", "http://127.0.0.1:2/v1", FALLBACK, 2, "fallback 1"),
        ("api_keys: [sk-one, sk-two]", "api_keys: [sk-a, sk-b, sk-c]", "http://127.0.0.1:2/v1", FALLBACK, 3,
         "fallback 1"),
        ("api_key: sk-one", "api_key: sk-one", "http://127.0.0.1:1/v1", FALLBACK, 0, "uses the same key"),
        ("api_key: sk-one", "api_key: sk-two", "http://127.0.0.1:1/v1/", FALLBACK.replace("n}", "m}"), 0,
         "same server and model"),
    ],
)  # fmt: skip
def test_the_page_counts_the_keys_and_names_the_dead_ends(
    environment: Environment, file: Path, main: str, spare: str, url: str, fallback: str, most: int, says: str
) -> None:
    told, shown = _page(environment, file, KEYED.format(main=main, spare=spare, url=url, fallback=fallback))
    repairs = told["repairs"]
    assert isinstance(repairs, dict)
    assert repairs["rotate_credential"] == most
    assert isinstance(told["most_calls"], int)
    assert says in shown
    assert "sk-" not in shown
    assert f"most calls in all {told['most_calls']} = " in shown


def test_the_table_promises_no_retry_where_waiting_changes_nothing(environment: Environment, file: Path) -> None:
    told, shown = _page(environment, file, CONFIG)
    rows = dict(line.split(" ", 1) for line in shown.splitlines() if line.split(" ", 1)[0] in set(Reason))
    assert told["retried"] == ["overloaded", "rate_limit", "server_error", "timeout", "unknown"]
    for reason in Reason:
        assert ("no retry" in rows[reason.value]) is (
            reason.value not in {str(r) for r in told["retried"]} and (reason, None) not in CURES
        )


@given(
    st.dictionaries(
        st.sampled_from(["id", "provider", "status", "exception", "headers", "body", "context"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
            max_leaves=15,
        ),
    )
)
def test_any_record_gets_a_line_that_is_json(record: dict[str, object]) -> None:
    assert json.loads(json.dumps(explain_error.explain(record, platform=False)))["reason"]


def _settings(environment: Environment, file: Path) -> dict[str, explain_config.Setting]:
    return {one.path: one for one in explain_config.in_force(environment, file)[0]}


def test_each_value_has_its_place(environment: Environment, file: Path) -> None:
    found = _settings(environment, file)
    for path, value, source in (
        ("model.provider", '"main"', "config.yaml:2"),
        ("fallback_providers[0].model", '"n"', "config.yaml:7"),
        ("agent.api_max_retries", "2", "config.yaml:8"),
        ("agent.max_turns", "40", "default"),
        ("gateway.bind", '"127.0.0.1:1234"', "HERMES_BIND"),
        ("platforms.telegram.allowed_users", '["7"]', "config.yaml:10"),
        ("platforms.discord.enabled", "false", "default"),
    ):
        assert (found[path].value, found[path].source) == (value, source), path


def test_no_secret_is_shown_however_it_was_given(environment: Environment, file: Path) -> None:
    found = _settings(environment, file)
    shown = "\n".join(f"{one.path} {one.value} {one.source}" for one in found.values())
    assert "plain-secret" not in shown
    assert found["providers.spare.api_key"].value == "(a secret)"
    assert found["gateway.api_key"].value == "(none)"


def test_every_key_of_the_configuration_is_shown_once(environment: Environment, file: Path) -> None:
    paths = [one.path for one in explain_config.in_force(environment, file)[0]]
    assert len(paths) == len(set(paths)) > 100
