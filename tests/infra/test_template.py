"""template.yaml held against the code, and against what no local server checks."""

import json
import re
import tomllib
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from handler.settings import Settings
from handler.settings_table import setting_rows
from infra import dynamodb, dynamodb_keys, dynamodb_lock, dynamodb_payments, dynamodb_usage
from infra.deploy.build_artifact import ARCHITECTURES, PYTHON_VERSION, ROOT
from tests.infra.template_reader import Template, load_template

FUNCTIONS = ("McpFunction", "InvokeFunction", "RefreshFunction")
ROLES = ("McpRole", "InvokeRole", "RefreshRole", "ScheduleRole")
ENDPOINTS = tuple(product(("HttpApi", "FunctionUrl"), ("AWS_IAM", "NONE")))


@pytest.fixture
def template() -> Template:
    return load_template()


@pytest.fixture(params=ENDPOINTS, ids="-".join)
def any_template(request: pytest.FixtureRequest) -> Template:
    endpoint, authorization = request.param
    return load_template(Endpoint=endpoint, Authorization=authorization)


AS_JSON = {"HAYFORK_SOURCES", "HAYFORK_POLICIES", "HAYFORK_QUOTAS", "HAYFORK_PRICES", "HAYFORK_X402"}
"""Variables that hold whole sections."""

LEFT_TO_DEFAULTS = {
    "a server of one's own, or the gateway's part": ("SERVER_",),
    "found by the issuer's own metadata": (
        *("AUTH_OAUTH_ALGORITHMS", "AUTH_OAUTH_AUDIENCE", "AUTH_OAUTH_JWKS_URL", "AUTH_OAUTH_TOOL_SCOPES"),
    ),
    "the bucket's own": ("AWS_ENCRYPTION", "AWS_KMS_KEY"),
    "said by Lambda": ("AWS_REGION", "AWS_LAMBDA_ENDPOINT"),
    "follows from the function's memory": ("DUCKDB_MEMORY_LIMIT", "DUCKDB_TEMP_FOLDER", "DUCKDB_THREADS"),
    "on for everybody": ("CORPUS_REDACT",),
    "calls are free until they have a price": ("METERING_", "PRICES_", "AWS_USAGE_TABLE"),
    "all of them together, as JSON": ("X402_",),
    "each with a reason in its own line": ("LIMITS_",),
    "versions of the bucket reach further back": ("RETENTION_GRACE_SECONDS", "RETENTION_KEEP_SNAPSHOTS"),
}
"""Settings that the template need not set, by reason; a name that ends in _ is a whole section."""


def test_every_setting_is_set_by_the_template_or_left_to_its_default_for_a_reason(template: Template) -> None:
    known = {row.variable for row in setting_rows() if row.variable} | AS_JSON
    names = [f"HAYFORK_{name}" for names in LEFT_TO_DEFAULTS.values() for name in names]
    left = {each for each in known for name in names if each == name or (name[-1] == "_" and each.startswith(name))}
    assert not [name for name in names if not any(each.startswith(name) for each in left)], "a reason without a setting"
    in_the_template = {name for function in FUNCTIONS for name in template.environment(function)}
    assert known - left <= in_the_template <= known
    own = {function: set(template.environment(function)) for function in FUNCTIONS}
    shared = set.intersection(*own.values())
    assert {function: sorted(names - shared) for function, names in own.items()} == {
        "McpFunction": [
            *("HAYFORK_AWS_INVOKE_FUNCTION", "HAYFORK_AWS_PAYMENTS_TABLE", "HAYFORK_AWS_PUBLIC_URL", "HAYFORK_X402"),
        ],
        "InvokeFunction": ["HAYFORK_AWS_PUBLIC_URL"],
        "RefreshFunction": ["HAYFORK_AWS_LOCK_TABLE", "HAYFORK_SOURCES"],
    }


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_functions_environment_is_made_of_settings_and_they_accept_it(
    template: Template, function: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment = template.environment(function)
    known = {row.variable for row in setting_rows() if row.variable}
    known |= AS_JSON
    assert set(environment) <= known
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value).replace("<", "").replace(">", ""))
    settings = Settings()
    assert settings.corpus.root == "s3://CorpusBucket"
    assert settings.aws.seen_table == "SeenTable"
    assert (settings.metered, settings.aws.usage_table) == (True, "UsageTable")
    if function == "RefreshFunction":
        assert [source.location for source in settings.sources] == ["s3://SourceBucket/messages/"]


def test_further_fields_of_the_source_come_through_a_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    options = '"roles":{"client":{"email_domain":["partner.example"]}},"workspace_url":"https://a.example"'
    template = load_template({"SourceBucket": "b"}, SourceOptions=options)
    monkeypatch.setenv("HAYFORK_SOURCES", template.environment("RefreshFunction")["HAYFORK_SOURCES"])
    (source,) = Settings().sources
    assert source.roles["client"].email_domain == ("partner.example",)
    assert (source.workspace_url, source.location) == ("https://a.example", "s3://b/messages/")


def test_what_is_sold_and_how_comes_through_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    template = load_template(Payment=SELLING, AuthModes="none")
    environment = template.environment("McpFunction")
    for name in ("HAYFORK_X402", "HAYFORK_AUTH_MODES", "HAYFORK_AWS_PAYMENTS_TABLE"):
        monkeypatch.setenv(name, environment[name])
    settings = Settings()
    assert (settings.x402.enabled, settings.x402.network, settings.auth.modes) == (True, "eip155:8453", ("none",))
    assert settings.aws.payments_table == "<PaymentsTable>"
    assert not {"HAYFORK_X402", "HAYFORK_AWS_PAYMENTS_TABLE"} & set(template.environment("RefreshFunction"))
    payments = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"}
    assert allowed(template, "McpRole")["<PaymentsTable.Arn>"] == payments


def test_who_sells_nothing_has_no_table_of_payments(template: Template) -> None:
    assert "PaymentsTable" not in template.of_type("AWS::DynamoDB::Table")
    assert template.environment("McpFunction")["HAYFORK_AWS_PAYMENTS_TABLE"] == ""


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_handler_can_be_imported_and_called(template: Template, function: str) -> None:
    module, _, name = template.resources[function]["Properties"]["Handler"].rpartition(".")
    assert callable(getattr(import_module(module), name))


SELLING = '{"enabled":true,"network":"eip155:8453"}'


def test_the_keys_of_each_table_are_those_of_its_adapter() -> None:
    template = load_template(Payment=SELLING)

    def keys(table: str) -> tuple[list[tuple[str, str]], dict[str, str], Any]:
        """Its key schema, the types in it, and its time to live."""
        properties = template.resources[table]["Properties"]
        schema = [(key["AttributeName"], key["KeyType"]) for key in properties["KeySchema"]]
        types = {each["AttributeName"]: each["AttributeType"] for each in properties["AttributeDefinitions"]}
        return schema, types, properties.get("TimeToLiveSpecification")

    assert keys("SeenTable") == (
        [(dynamodb.PARTITION_KEY, "HASH"), (dynamodb.SORT_KEY, "RANGE")],
        {dynamodb.PARTITION_KEY: "S", dynamodb.SORT_KEY: "N"},
        {"AttributeName": dynamodb.TTL_ATTRIBUTE, "Enabled": True},
    )
    assert keys("LockTable") == (
        [(dynamodb_lock.KEY, "HASH")],
        {dynamodb_lock.KEY: "S"},
        {"AttributeName": dynamodb_lock.EXPIRY, "Enabled": True},
    )

    assert keys("UsageTable") == (
        [(dynamodb_usage.PARTITION_KEY, "HASH"), (dynamodb_usage.SORT_KEY, "RANGE")],
        {dynamodb_usage.PARTITION_KEY: "S", dynamodb_usage.SORT_KEY: "S"},
        {"AttributeName": dynamodb_usage.TTL_ATTRIBUTE, "Enabled": True},
    )
    assert keys("PaymentsTable") == (
        [(dynamodb_payments.PARTITION_KEY, "HASH")],
        {dynamodb_payments.PARTITION_KEY: "S"},
        {"AttributeName": dynamodb_payments.TTL_ATTRIBUTE, "Enabled": True},
    )

    # What was revoked stays, for whoever looks after it.
    assert keys("KeysTable") == ([(dynamodb_keys.PARTITION_KEY, "HASH")], {dynamodb_keys.PARTITION_KEY: "S"}, None)


@pytest.mark.parametrize("table", ["SeenTable", "LockTable", "KeysTable", "UsageTable", "PaymentsTable"])
def test_tables_are_on_demand_encrypted_and_recoverable(table: str) -> None:
    properties = load_template(Payment=SELLING).resources[table]["Properties"]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["SSESpecification"] == {"SSEEnabled": True}


@pytest.mark.parametrize("bucket", ["SourceBucket", "CorpusBucket"])
def test_buckets_are_private_encrypted_versioned_and_outlive_the_stack(template: Template, bucket: str) -> None:
    resource = template.resources[bucket]
    properties = resource["Properties"]
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
    assert properties["PublicAccessBlockConfiguration"] == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    assert properties["BucketEncryption"] == {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    }
    assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    rules = {rule["Id"]: rule for rule in properties["LifecycleConfiguration"]["Rules"]}
    assert rules["what-was-replaced"] == {
        "Id": "what-was-replaced",
        "Status": "Enabled",
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
        "ExpiredObjectDeleteMarker": True,
    }
    exports = {"Id": "exports", "Status": "Enabled", "Prefix": "exports/", "ExpirationInDays": 7}
    assert rules.get("exports") == (exports if bucket == "CorpusBucket" else None)


@pytest.mark.parametrize(
    ("policy", "resource", "what"),
    [
        ("SourceBucketPolicy", "SourceBucket", "s3:*"),
        ("CorpusBucketPolicy", "CorpusBucket", "s3:*"),
        ("RefreshFailuresPolicy", "RefreshFailures", "sqs:*"),
    ],
)
def test_what_is_not_sent_by_tls_is_refused(template: Template, policy: str, resource: str, what: str) -> None:
    (statement,) = template.resources[policy]["Properties"]["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", what)
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    arn = f"<{resource}.Arn>"
    assert statement["Resource"] in ([arn, f"{arn}/*"], arn)


def test_every_log_group_ends_and_every_function_writes_to_its_own(any_template: Template) -> None:
    groups = any_template.of_type("AWS::Logs::LogGroup")
    assert {properties["RetentionInDays"] for properties in groups.values()} == {"30"}
    used = [any_template.resources[f]["Properties"]["LoggingConfig"]["LogGroup"] for f in FUNCTIONS]
    assert used == ["<McpLog>", "<InvokeLog>", "<RefreshLog>"]


def test_no_statement_allows_more_than_can_be_named(any_template: Template) -> None:
    for role in ROLES:
        for statement in any_template.statements(role):
            assert statement["Effect"] == "Allow"
            for action in statement["Action"]:
                assert re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action), (role, action)
            for resource in statement["Resource"]:
                assert re.match(r"<[A-Za-z]+\.Arn>", resource), (role, resource)
    assert not any("ManagedPolicyArns" in r for r in any_template.of_type("AWS::IAM::Role").values())
    assert not any("Policies" in f for f in any_template.of_type("AWS::Serverless::Function").values())


def allowed(template: Template, role: str) -> dict[str, set[str]]:
    """Resources of a role's statements, with the actions allowed on each."""
    found: dict[str, set[str]] = {}
    for statement in template.statements(role):
        for resource in statement["Resource"]:
            found.setdefault(resource, set()).update(statement["Action"])
    return found


def test_each_function_may_do_what_it_does_and_no_more(template: Template) -> None:
    write = {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
    log = {"logs:CreateLogStream", "logs:PutLogEvents"}
    answer = {
        "<CorpusBucket.Arn>/CURRENT": {"s3:GetObject"},
        "<CorpusBucket.Arn>/snapshots/*": {"s3:GetObject"},
        "<CorpusBucket.Arn>/exports/*": write,
        "<CorpusBucket.Arn>": {"s3:ListBucket"},
        "<SeenTable.Arn>": {"dynamodb:Query", "dynamodb:PutItem", "dynamodb:GetItem"},
        "<UsageTable.Arn>": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
    }
    assert allowed(template, "McpRole") == {
        **answer,
        "<KeysTable.Arn>": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "<McpLog.Arn>": log,
        "<InvokeFunction.Arn>:live": {"lambda:InvokeFunction"},
    }
    assert allowed(template, "InvokeRole") == {**answer, "<InvokeLog.Arn>": log}
    assert allowed(template, "RefreshRole") == {
        "<RefreshLog.Arn>": log,
        "<SourceBucket.Arn>/messages/*": {"s3:GetObject"},
        "<SourceBucket.Arn>": {"s3:ListBucket"},
        "<CorpusBucket.Arn>": {"s3:ListBucket"},
        "<CorpusBucket.Arn>/CURRENT": {"s3:GetObject", "s3:PutObject"},
        "<CorpusBucket.Arn>/snapshots/*": write,
        "<LockTable.Arn>": {"dynamodb:PutItem", "dynamodb:DeleteItem"},
        "<RefreshFailures.Arn>": {"sqs:SendMessage"},
    }
    assert allowed(template, "ScheduleRole") == {
        "<RefreshFunction.Arn>:live": {"lambda:InvokeFunction"},
        "<RefreshFailures.Arn>": {"sqs:SendMessage"},
    }


@pytest.mark.parametrize("endpoint", ["HttpApi", "FunctionUrl"])
def test_nothing_is_open_to_the_world_unless_asked_for(endpoint: str) -> None:
    closed = load_template(Endpoint=endpoint)
    routes = {r["RouteKey"]: r["AuthorizationType"] for r in closed.of_type("AWS::ApiGatewayV2::Route").values()}
    urls = [url["AuthType"] for url in closed.of_type("AWS::Lambda::Url").values()]
    if endpoint == "HttpApi":
        # Whoever holds an export's link may follow it: its id is the key.
        # Whoever has no token yet must be able to learn where to get one.
        metadata = "GET /.well-known/oauth-protected-resource/mcp"
        asked = {"ANY /mcp": "AWS_IAM", "GET /usage": "AWS_IAM"}
        exports = {"GET /exports/{id}": "NONE", "HEAD /exports/{id}": "NONE"}
        assert (routes, urls) == ({**asked, **exports, metadata: "NONE"}, [])
    else:
        assert (routes, urls) == ({}, ["AWS_IAM"])
    principals = [p["Principal"] for p in closed.of_type("AWS::Lambda::Permission").values()]
    assert "*" not in principals
    opened = load_template(Endpoint=endpoint, Authorization="NONE")
    open_principals = [p["Principal"] for p in opened.of_type("AWS::Lambda::Permission").values()]
    assert ("*" in open_principals) == (endpoint == "FunctionUrl")


def test_api_url_and_schedule_call_the_alias(any_template: Template) -> None:
    integrations = [i["IntegrationUri"] for i in any_template.of_type("AWS::ApiGatewayV2::Integration").values()]
    assert all("/functions/<McpFunction.Arn>:live/invocations" in uri for uri in integrations)
    assert all(url["Qualifier"] == "live" for url in any_template.of_type("AWS::Lambda::Url").values())
    permissions = any_template.of_type("AWS::Lambda::Permission").values()
    assert {p["FunctionName"] for p in permissions} <= {"<McpFunctionAliaslive>"}
    schedules = any_template.of_type("AWS::Scheduler::Schedule").values()
    assert [each["Target"]["Arn"] for each in schedules] == ["<RefreshFunctionAliaslive>", "<InvokeFunctionAliaslive>"]
    environment = any_template.environment("McpFunction")
    assert environment["HAYFORK_AWS_INVOKE_FUNCTION"] == "<InvokeFunctionAliaslive>"
    for function in FUNCTIONS:
        assert any_template.resources[function]["Properties"]["AutoPublishAlias"] == "live"


REVISION = "0123456789abcdef" * 4


def test_a_parameters_new_value_makes_a_new_version_of_every_function(template: Template) -> None:
    """SAM hashes a function's text, in which a parameter's value does not stand, unless it is given a digest."""
    for function in FUNCTIONS:
        properties = load_template(Revision=REVISION).resources[function]["Properties"]
        assert properties["AutoPublishCodeSha256"] == REVISION
        assert properties["VersionDeletionPolicy"] == "Delete"
        # Either would hash the text instead, or as well.
        assert "AutoPublishAliasAllProperties" not in properties
    assert "Default" not in template.raw["Parameters"]["Revision"]


def test_a_plain_sam_deploy_is_refused_and_says_how(template: Template) -> None:
    configured = tomllib.loads((ROOT / "samconfig.toml").read_text("utf-8"))["default"]["deploy"]["parameters"]
    name, _, value = configured["parameter_overrides"].partition("=")
    assert name == "Revision"
    assert load_template(Revision=value).refusals() == ["Revision"]
    assert load_template(Revision=REVISION).refusals() == []
    assert "make deploy" in template.raw["Parameters"]["Revision"]["ConstraintDescription"]


ISSUER = "https://issuer.example"


@pytest.mark.parametrize(
    ("parameters", "refused"),
    [
        ({"Authorization": "NONE"}, "With Authorization NONE, AuthModes is api_key, oauth or both"),
        ({"Authorization": "NONE", "AuthModes": "iam,api_key"}, "With Authorization NONE, AuthModes is api_key, oauth"),
        (
            {"AuthModes": "oauth", "OAuthIssuer": ISSUER},
            "With Authorization AWS_IAM, AuthModes is iam, api_key or both",
        ),
        ({"Authorization": "NONE", "AuthModes": "oauth"}, "With oauth among AuthModes, OAuthIssuer says"),
        ({"OAuthIssuer": ISSUER}, "OAuthIssuer is given, but AuthModes has no oauth"),
        ({"OAuthScopes": "read"}, "OAuthScopes is given, but AuthModes has no oauth"),
        ({"Authorization": "NONE", "AuthModes": "api_key,oauth", "OAuthIssuer": ISSUER, "OAuthScopes": "a"}, ""),
        ({"Authorization": "NONE", "AuthModes": "api_key"}, ""),
        ({"AuthModes": "api_key,iam"}, ""),
    ],
)
def test_parameters_that_contradict_one_another_are_refused(parameters: dict[str, str], refused: str) -> None:
    said = load_template(None, Revision=REVISION, **parameters).refusals()
    assert [words[: len(refused)] for words in said] == ([refused] if refused else [])


def test_two_stacks_have_two_dashboards_in_whatever_region(template: Template) -> None:
    name = template.resources["Dashboard"]["Properties"]["DashboardName"]
    assert name == "hayfork-us-east-1"
    address = template.value(template.raw["Outputs"]["DashboardAddress"])["Value"]
    assert address.endswith(f"#dashboards:name={name}")


def test_the_http_api_is_throttled_and_logs_no_path(template: Template) -> None:
    stage = template.resources["HttpApiStage"]["Properties"]
    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": "20", "ThrottlingBurstLimit": "40"}
    logged = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"route", "status", "ms"} <= set(logged)
    assert not [v for v in logged.values() if "path" in v.lower() or "sourceIp" in v or "querystring" in v.lower()]


def test_a_failed_refresh_is_tried_twice_more_and_then_kept(template: Template) -> None:
    function = template.resources["RefreshFunction"]["Properties"]
    assert function["EventInvokeConfig"]["MaximumRetryAttempts"] == 2
    assert function["DeadLetterQueue"] == {"Type": "SQS", "TargetArn": "<RefreshFailures.Arn>"}
    target = template.resources["RefreshSchedule"]["Properties"]["Target"]
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 2
    assert target["DeadLetterConfig"] == {"Arn": "<RefreshFailures.Arn>"}
    assert template.resources["RefreshFailures"]["Properties"]["SqsManagedSseEnabled"] is True


def test_the_rate_is_a_parameter() -> None:
    schedule = load_template(RefreshRate="rate(5 minutes)").resources["RefreshSchedule"]["Properties"]
    assert (schedule["ScheduleExpression"], schedule["State"]) == ("rate(5 minutes)", "ENABLED")


def test_prices_and_quotas_come_through_parameters_and_what_was_paid_outlives_the_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    template = load_template(
        Metering="off", MeteringWhenDown="serve", Prices='{"export_row":20}', Quotas='[{"prepaid":true}]'
    )
    for name in ("METERING_MODE", "METERING_WHEN_DOWN", "PRICES", "QUOTAS"):
        monkeypatch.setenv(f"HAYFORK_{name}", template.environment("McpFunction")[f"HAYFORK_{name}"])
    settings = Settings()
    assert (settings.metered, settings.metering.when_down, settings.prices.export_row) == (False, "serve", 20)
    assert [quota.prepaid for quota in settings.quotas] == [True]
    table = template.resources["UsageTable"]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_reserved_concurrency_is_off_by_default() -> None:
    assert "ReservedConcurrentExecutions" not in load_template().resources["McpFunction"]["Properties"]
    reserved = load_template(McpReservedConcurrency="5").resources["McpFunction"]["Properties"]
    assert reserved["ReservedConcurrentExecutions"] == "5"


def test_functions_run_on_the_python_and_the_architectures_the_artifact_is_built_for(template: Template) -> None:
    assert set(template.raw["Parameters"]["Architecture"]["AllowedValues"]) == set(ARCHITECTURES)
    for architecture in ARCHITECTURES:
        for_it = load_template(Architecture=architecture)
        for function in FUNCTIONS:
            resource = for_it.resources[function]
            assert resource["Properties"]["Runtime"] == f"python{PYTHON_VERSION}"
            assert resource["Properties"]["Architectures"] == [architecture]
            makefile = ROOT / resource["Metadata"]["ContextPath"] / "Makefile"
            assert f"ARCHITECTURE := {architecture}\n" in makefile.read_text("utf-8")
    targets = (ROOT / "infra/deploy/Makefile").read_text("utf-8")
    assert all(f"build-{function}" in targets for function in FUNCTIONS)


def test_snapstart_is_only_where_storage_allows_it(template: Template) -> None:
    functions = {name: template.resources[name]["Properties"] for name in FUNCTIONS}
    assert functions["McpFunction"]["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    assert "EphemeralStorage" not in functions["McpFunction"]
    assert functions["RefreshFunction"]["EphemeralStorage"] == {"Size": "4096"}
    assert not [name for name in FUNCTIONS[1:] if "SnapStart" in functions[name]]


@pytest.mark.parametrize(("endpoint", "service"), [("HttpApi", "execute-api"), ("FunctionUrl", "lambda")])
def test_the_client_configuration_can_be_pasted(endpoint: str, service: str) -> None:
    template = load_template({"McpUrl.FunctionUrl": "https://abc.lambda-url.us-east-1.on.aws/"}, Endpoint=endpoint)
    outputs = {name: template.value(o)["Value"] for name, o in template.raw["Outputs"].items()}
    server = json.loads(outputs["ClientConfiguration"])["mcpServers"]["hayfork"]
    arguments = server["args"]
    assert server["command"] == "uvx"
    assert arguments[1] == outputs["McpEndpoint"]
    assert arguments[1].endswith("/mcp")
    assert arguments[arguments.index("--service") + 1] == service
