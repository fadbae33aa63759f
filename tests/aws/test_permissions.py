"""What the functions call, recorded as they run, against what the template's roles allow.

DuckDB reads a snapshot's files by itself, so its calls are not among those recorded; they need `s3:GetObject` on
`snapshots/`, which the application's own reading of manifests does as well.
"""

import json
import re
from fnmatch import fnmatchcase
from typing import Any

import pytest

from handler.auth.api_key import mint_key
from infra.aws import AwsSettings
from infra.dynamodb_keys import DynamoKeys
from tests.aws.conftest import Deployment
from tests.aws.gateway import event_of
from tests.aws.runtime_api import Function
from tests.aws.test_lambda_mcp import called

pytestmark = [pytest.mark.aws, pytest.mark.slow]

RECORD = """
import json, sys, botocore.client
made = botocore.client.BaseClient._make_api_call
def recorded(self, name, params):
    service = self.meta.service_model.service_name
    # A transaction is allowed what its parts are.
    for part in params.get("TransactItems", []):
        for kind, inner in part.items():
            sys.stderr.write("recorded " + json.dumps([service, kind + "Item", inner["TableName"], None]) + "\\n")
    if "TransactItems" in params:
        return made(self, name, params)
    what = [service, name]
    keys = [each["Key"] for each in params.get("Delete", {}).get("Objects", [])] or [params.get("Key")]
    for key in keys:
        place = params.get("Bucket") or params.get("TableName") or params.get("FunctionName")
        sys.stderr.write("recorded " + json.dumps([*what, place, key if isinstance(key, str) else None]) + "\\n")
    return made(self, name, params)
botocore.client.BaseClient._make_api_call = recorded
"""

ACTIONS = {
    "HeadObject": "GetObject",
    "ListObjectsV2": "ListBucket",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "DeleteObjects": "DeleteObject",
    "Invoke": "InvokeFunction",
}


def recorded(function: Function) -> set[tuple[str, str]]:
    """Every action and the resource it was called on, as IAM names them."""
    found = set()
    for line in re.findall(r"^recorded (.*)$", function.output(), re.MULTILINE):
        service, operation, place, key = json.loads(line)
        action = f"{service}:{ACTIONS.get(operation, operation)}"
        found.add((action, f"{place}/{key}" if key is not None and service == "s3" else str(place)))
    return found


def idle(deployment: Deployment, role: str, function: Function) -> set[str]:
    """What a role allows that was not called, without the logging that Lambda does in the function's name.

    Raises:
        AssertionError: something was called that is not allowed.
    """
    names = deployment.template.names
    calls = recorded(function)
    rights = [
        (action, resource)
        for statement in deployment.template.statements(role)
        for action in statement["Action"]
        for resource in statement["Resource"]
        if not action.startswith("logs:")
    ]

    def covers(resource: str, place: str) -> bool:
        pattern = re.sub(r"<(\w+)\.Arn>", lambda found: names.get(found[1], found[0]), resource)
        return fnmatchcase(place, pattern)

    for action, place in sorted(calls):
        assert any(a == action and covers(resource, place) for a, resource in rights), (action, place)
    return {
        f"{action} {resource.replace('<', '').replace('.Arn>', '')}"
        for action, resource in rights
        if not any(a == action and covers(resource, place) for a, place in calls)
    }


EXPORTS_IN_NEED = {
    "s3:AbortMultipartUpload CorpusBucket/exports/*",  # an upload in parts that fails
    "s3:DeleteObject CorpusBucket/exports/*",  # an export that is revoked
    "dynamodb:GetItem SeenTable",  # a claim whose answer was lost
}


def use(function: Function, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = function.invoke({"tool": tool, "arguments": arguments, "caller": "test"})
    assert "error" not in answer, answer
    return answer


def test_the_mcp_function_is_allowed_what_it_calls(deployment: Deployment) -> None:
    environment = {**deployment.environment("McpFunction"), "HAYFORK_AUTH_MODES": "iam,api_key"}
    key, credential = mint_key("test", 0)
    table = DynamoKeys(
        deployment.template.names["KeysTable"], AwsSettings(endpoint_url=deployment.aws.dynamodb_endpoint)
    )
    assert table.add(key)
    with deployment.run("McpFunction", environment=environment, preload=RECORD) as function:
        by_key = event_of("http-api", headers={"x-api-key": credential})
        del by_key["requestContext"]["authorizer"]
        assert function.invoke(by_key)["statusCode"] == 200
        before = json.loads(function.invoke(event_of("http-api", "GET", "/usage"))["body"]).get("calls", 0)
        called(function, "count_messages", {"query": "docker"})
        text = called(function, "search_messages", {"query": "docker", "limit": 1})["content"][0]["text"]
        session = text.split("session ")[1].split()[0]
        called(function, "unseen_messages", {"query": "docker", "session": session})
        assert json.loads(function.invoke(event_of("http-api", "GET", "/usage"))["body"])["calls"] == before + 3
        link = called(function, "export_messages", {"query": "docker"})["content"][1]["uri"]
        path = link.removeprefix("https://hayfork.test")
        assert function.invoke(event_of("http-api", "GET", path))["statusCode"] == 302
        # An export of over 15 s is handed on.
        assert idle(deployment, "McpRole", function) == {
            *EXPORTS_IN_NEED,
            "lambda:InvokeFunction InvokeFunction:live",
        }


def test_the_invoke_function_is_allowed_what_it_calls(deployment: Deployment) -> None:
    with deployment.run("InvokeFunction", preload=RECORD) as function:
        session = use(function, "search_messages", {"query": "docker", "limit": 1})["session"]
        again = {"query": "docker", "session": session, "after_batch": 1}
        assert [use(function, "unseen_messages", again).get("repeated") for _ in range(2)] == [None, True]
        made = use(function, "export_messages", {"query": "docker"})
        function.invoke({"export": made["link"].rsplit("/", 1)[1]})
        assert idle(deployment, "InvokeRole", function) == EXPORTS_IN_NEED


def test_the_refresh_function_is_allowed_what_it_calls(deployment: Deployment) -> None:
    environment = {
        **deployment.environment("RefreshFunction"),
        "HAYFORK_RETENTION_KEEP_SNAPSHOTS": "1",
        "HAYFORK_RETENTION_GRACE_SECONDS": "0",
    }
    with deployment.run("RefreshFunction", environment=environment, preload=RECORD) as function:
        assert function.invoke({"force": True})["published"]
        assert function.invoke({"force": True})["removed_snapshots"]
        assert not function.invoke({})["published"]
        assert idle(deployment, "RefreshRole", function) == {
            "s3:AbortMultipartUpload CorpusBucket/snapshots/*",  # an upload in parts that fails
            "sqs:SendMessage RefreshFailures",  # called by Lambda
        }
