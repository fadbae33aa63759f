"""The whole stack as `sam deploy` makes it, on a local stand-in for AWS that enforces IAM.

What the stand-in drops (TTL, recovery, encryption, lifecycle) is held against the template in test_template. It
speaks no TLS, so once the bucket policies have been seen to refuse that, they are removed. One test, since a stack has
one history: what a step finds is what the steps before it made.
"""

import json
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from handler.auth.api_key import mint_key
from infra.aws import AwsSettings
from infra.deploy.build_artifact import ROOT
from infra.dynamodb_keys import DynamoKeys
from tests.aws.conftest import FABRIC
from tests.aws.sam import sam
from tests.local_aws import ministack

pytestmark = [pytest.mark.aws, pytest.mark.slow]

STACK = "hayfork-test"
KEY, SECRET, REGION = "test", "test", "us-east-1"
ROLES = '"roles":{"client":{"email_domain":["partner.example"]}}'


@dataclass
class Stack:
    """A deployed stack: where it is, and what it says of itself."""

    endpoint: str
    home: Path
    built: Path
    architecture: str

    def client(self, service: str, credentials: dict[str, str] | None = None) -> Any:
        keys = credentials or {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION, **keys)  # type: ignore[call-overload]  # any service

    def deploy(self, **parameters: str) -> None:
        """As `make deploy` does, with the parameters to change."""
        sam(
            self.home,
            str(ROOT / "infra" / "deploy" / "deploy_stack.py"),
            f"--architecture={self.architecture}",
            f"--built={self.built}",
            f"--file={self.home / 'parameters.toml'}",
            f"--stack={STACK}",
            "--option=--no-confirm-changeset",
            "--option=--no-progressbar",
            *(f"{name}={value}" for name, value in parameters.items()),
            program="python",
            environment=self.environment,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": self.endpoint}

    @property
    def outputs(self) -> dict[str, str]:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    def resource(self, name: str) -> str:
        described = self.client("cloudformation").describe_stack_resource(StackName=STACK, LogicalResourceId=name)
        physical: str = described["StackResourceDetail"]["PhysicalResourceId"]
        return physical

    def invoke(self, output: str, event: Any) -> tuple[bool, Any]:
        """Whether the function failed, and its answer."""
        answer = self.client("lambda").invoke(FunctionName=self.outputs[output], Payload=json.dumps(event).encode())
        return "FunctionError" in answer, json.loads(answer["Payload"].read())

    def post(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        service: str,
        signed: bool = True,
        key: str = "",
        by: Credentials | None = None,
    ) -> tuple[int, Any]:
        """A tool call over HTTP, at the host that the stand-in serves the endpoint's host under."""
        port = urlsplit(self.endpoint).port
        kind = f"lambda-url.{REGION}" if service == "lambda" else "execute-api"
        name = urlsplit(self.outputs["McpEndpoint"]).hostname
        assert name is not None
        host = f"{name.split('.')[0]}.{kind}.localhost:{port}"
        params = {"name": tool, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        headers |= {"x-api-key": key} if key else {}
        request = AWSRequest("POST", f"http://{host}/mcp", data=body, headers=headers)
        if signed:
            SigV4Auth(by or Credentials(KEY, SECRET), service, REGION).add_auth(request)
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("POST", "/mcp", body, {**dict(request.headers.items()), "Host": host})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@pytest.fixture
def stack(tmp_path: Path, architecture: str) -> Iterator[Stack]:
    home, built = tmp_path, tmp_path / "built"
    overrides = f"Architecture={architecture}"
    sam(home, "build", "--build-dir", str(built), "--parameter-overrides", overrides)
    with ministack(home, {"AUTH": "true"}) as endpoint:
        made = Stack(endpoint, home, built, architecture)
        # The stand-in tells a function behind a Function URL not who signed, so there a key says who asks.
        rate = "rate(1 minute)"
        made.deploy(Endpoint="FunctionUrl", AuthModes="api_key,iam", SourceOptions=ROLES, RefreshRate=rate)
        yield made


def test_a_stack_is_made_asked_updated_and_deleted(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**stack.environment, "AWS_REGION": REGION}.items():
        monkeypatch.setenv(name, value)
    a_refresh_without_tls_is_refused_by_the_buckets(stack)
    without_tls(stack)
    the_schedule_fires_and_publishes_a_snapshot(stack)
    the_function_url_answers_only_a_signed_request_with_a_key(stack)
    another_program_is_answered_and_an_export_is_written(stack)
    each_role_is_refused_what_is_not_its_own(stack)
    a_function_without_its_right_to_export_cannot(stack)
    sam_alone_cannot_leave_the_alias_at_old_policies(stack)
    the_stack_is_updated_to_an_http_api_and_its_alias_serves_the_new_policies(stack)
    the_stack_is_deleted_and_leaves_only_what_people_put_there(stack)


def without_tls(stack: Stack) -> None:
    """The stand-in speaks none, so what refuses it must go."""
    for bucket in ("SourceBucketName", "CorpusBucketName"):
        stack.client("s3").delete_bucket_policy(Bucket=stack.outputs[bucket])


def a_refresh_without_tls_is_refused_by_the_buckets(stack: Stack) -> None:
    s3 = stack.client("s3")
    s3.upload_file(str(FABRIC), stack.outputs["SourceBucketName"], f"messages/{FABRIC.name}")
    failed, answer = stack.invoke("RefreshFunctionName", {})
    assert failed
    assert answer["errorMessage"].startswith("store_unreachable: ")


def the_schedule_fires_and_publishes_a_snapshot(stack: Stack) -> None:
    bucket, s3 = stack.outputs["CorpusBucketName"], stack.client("s3")
    deadline = time.monotonic() + 150
    while not s3.list_objects_v2(Bucket=bucket, Prefix="CURRENT").get("KeyCount"):
        assert time.monotonic() < deadline, "the schedule did not fire"
        threading.Event().wait(1)  # the schedule runs by real time
    manifests = [each["Key"] for each in s3.list_objects_v2(Bucket=bucket, Prefix="snapshots/")["Contents"]]
    assert [key.rsplit("/", 1)[1] for key in manifests].count("manifest.json") == 1


def the_function_url_answers_only_a_signed_request_with_a_key(stack: Stack) -> None:
    key, credential = mint_key("deployed", 0)
    assert DynamoKeys(stack.outputs["KeysTableName"], AwsSettings(REGION, stack.endpoint)).add(key)
    question = ("search_messages", {"query": "docker", "limit": 1})
    status, answer = stack.post(*question, service="lambda", key=credential)
    assert status == 200
    assert "found: 275 messages by 80 authors" in answer["result"]["content"][0]["text"]
    assert stack.post(*question, service="lambda", signed=False, key=credential)[0] == 403
    for wrong in ("", credential[:-3] + "AAA"):
        status, answer = stack.post(*question, service="lambda", key=wrong)
        assert (status, answer["error"]) == (401, "invalid_token")


def another_program_is_answered_and_an_export_is_written(stack: Stack) -> None:
    event = {"tool": "export_messages", "arguments": {"query": "couchdb"}, "caller": "test"}
    failed, answer = stack.invoke("InvokeFunctionName", event)
    assert not failed
    assert (answer["format"], answer["rows"]) == ("jsonl", answer["found"]["messages"])
    keys = stack.client("s3").list_objects_v2(Bucket=stack.outputs["CorpusBucketName"], Prefix="exports/")["Contents"]
    assert len([key for key in keys if key["Key"].endswith(".jsonl")]) == 1


def refused(call: Callable[..., object], **arguments: object) -> bool:
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"] in {"AccessDenied", "AccessDeniedException", "403"}
    return False


def each_role_is_refused_what_is_not_its_own(stack: Stack) -> None:
    def as_role(name: str, service: str) -> Any:
        arn = f"arn:aws:iam::000000000000:role/{stack.resource(name)}"
        given = stack.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        keys = {
            "aws_access_key_id": given["AccessKeyId"],
            "aws_secret_access_key": given["SecretAccessKey"],
            "aws_session_token": given["SessionToken"],
        }
        return stack.client(service, keys)

    corpus, sources = stack.outputs["CorpusBucketName"], stack.outputs["SourceBucketName"]
    lock, seen = stack.resource("LockTable"), stack.resource("SeenTable")
    for role in ("McpRole", "InvokeRole"):
        s3, dynamodb = as_role(role, "s3"), as_role(role, "dynamodb")
        s3.get_object(Bucket=corpus, Key="CURRENT")
        assert refused(s3.put_object, Bucket=corpus, Key="CURRENT", Body=b"{}")
        assert refused(s3.put_object, Bucket=corpus, Key="snapshots/a/manifest.json", Body=b"{}")
        assert refused(s3.delete_object, Bucket=corpus, Key="CURRENT")
        assert refused(s3.get_object, Bucket=sources, Key=f"messages/{FABRIC.name}")
        assert refused(dynamodb.scan, TableName=seen)
        assert refused(dynamodb.delete_item, TableName=lock, Key={"name": {"S": "refresh"}})
    s3, dynamodb = as_role("RefreshRole", "s3"), as_role("RefreshRole", "dynamodb")
    s3.get_object(Bucket=sources, Key=f"messages/{FABRIC.name}")
    assert refused(s3.put_object, Bucket=sources, Key="messages/new", Body=b"")
    assert refused(s3.get_object, Bucket=corpus, Key="exports/records/a.json")
    item = {"session": {"S": "a"}, "number": {"N": "1"}}
    assert refused(dynamodb.put_item, TableName=seen, Item=item)


def a_function_without_its_right_to_export_cannot(stack: Stack) -> None:
    iam, role = stack.client("iam"), stack.resource("InvokeRole")
    policy = iam.get_role_policy(RoleName=role, PolicyName="answer")["PolicyDocument"]
    less = {**policy, "Statement": [s for s in policy["Statement"] if s["Sid"] != "Export"]}
    event = {"tool": "export_messages", "arguments": {"query": "couchdb"}, "caller": "test"}
    iam.put_role_policy(RoleName=role, PolicyName="answer", PolicyDocument=json.dumps(less))
    try:
        failed, answer = stack.invoke("InvokeFunctionName", event)
        assert not failed
        assert answer["error"]["code"] == "store_unreachable"
    finally:
        iam.put_role_policy(RoleName=role, PolicyName="answer", PolicyDocument=json.dumps(policy))


def sam_alone_cannot_leave_the_alias_at_old_policies(stack: Stack) -> None:
    """What a plain `sam deploy` asks for with the samconfig.toml of the project, and is told."""
    configured = tomllib.loads((ROOT / "samconfig.toml").read_text("utf-8"))["default"]["deploy"]["parameters"]
    given = dict(word.split("=") for word in [configured["parameter_overrides"]])
    with pytest.raises(ClientError, match="make deploy"):
        stack.client("cloudformation").create_change_set(
            StackName=STACK,
            ChangeSetName="by-sam-alone",
            UsePreviousTemplate=True,
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
        )


def the_stack_is_updated_to_an_http_api_and_its_alias_serves_the_new_policies(stack: Stack) -> None:
    def versions() -> tuple[str, list[str]]:
        """The one the alias leads to, and all there are."""
        functions, name = stack.client("lambda"), stack.resource("McpFunction")
        listed = [each["Version"] for each in functions.list_versions_by_function(FunctionName=name)["Versions"]]
        return functions.get_alias(FunctionName=name, Name="live")["FunctionVersion"], listed

    before, _ = versions()
    policies = [{"callers": ["iam:*"], "allow": ["chaincode"]}]
    stack.deploy(Endpoint="HttpApi", RefreshState="DISABLED", Policies=json.dumps(policies))
    without_tls(stack)
    served, kept = versions()
    assert served != before
    assert sorted(kept) == sorted(["$LATEST", served]), "the version before would be paid for"
    assert ".execute-api." in stack.outputs["McpEndpoint"]
    iam = stack.client("iam")
    iam.create_user(UserName="agent")
    statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName="agent", PolicyName="ask", PolicyDocument=policy)
    given = iam.create_access_key(UserName="agent")["AccessKey"]
    agent = Credentials(given["AccessKeyId"], given["SecretAccessKey"])
    question = ("count_messages", {"query": "docker"})
    status, answer = stack.post(*question, service="execute-api", by=agent)
    # 275 in all: the policies before let everybody see everything.
    assert (status, "found: 149 messages" in json.dumps(answer)) == (200, True), answer
    schedule = stack.client("scheduler").get_schedule(Name=stack.resource("RefreshSchedule").rsplit("/", 1)[-1])
    assert schedule["State"] == "DISABLED"


def the_stack_is_deleted_and_leaves_only_what_people_put_there(stack: Stack) -> None:
    buckets = {stack.outputs["SourceBucketName"], stack.outputs["CorpusBucketName"]}
    functions = {stack.resource(name) for name in ("McpFunction", "InvokeFunction", "RefreshFunction")}
    usage = stack.resource("UsageTable")
    sam(stack.home, "delete", "--stack-name", STACK, "--no-prompts", environment=stack.environment)
    left = stack.client("lambda").list_functions()["Functions"]
    assert not functions & {each["FunctionName"] for each in left}
    # What was used and paid outlives the stack.
    assert stack.client("dynamodb").list_tables()["TableNames"] == [usage]
    assert buckets <= {bucket["Name"] for bucket in stack.client("s3").list_buckets()["Buckets"]}
