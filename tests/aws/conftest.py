"""The deployment that the end-to-end tests share: the built artifact, and the stores the template describes."""

import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from infra.deploy.build_artifact import ROOT, build
from tests.aws.runtime_api import Function, RestoreGate, lambda_function
from tests.infra.template_reader import Template, load_template
from tests.local_aws import LocalAws
from tests.loopback.sitecustomize import MAY_DOWNLOAD

FABRIC = ROOT / "tests" / "fixtures" / "slack-export-fabric.zip"
ROLES = '"roles":{"client":{"email_domain":["partner.example"]},"teammate":{"email_domain":["fabric.example"]}}'


@pytest.fixture(scope="session")
def architecture() -> str:
    """This machine's, in Lambda's words."""
    return "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"


@pytest.fixture(scope="session")
def artifact(architecture: str) -> Iterator[Path]:
    """What `sam build` makes of a function, for this machine."""
    (ROOT / "build").mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="artifact-test-", dir=ROOT / "build"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MAY_DOWNLOAD, "1")
        build(architecture, folder)
    yield folder
    shutil.rmtree(folder)


@dataclass(frozen=True, slots=True)
class Deployment:
    """The stores of one deployment, empty at first, and how its functions are run over them."""

    aws: LocalAws
    template: Template
    artifact: Path
    source_bucket: str
    corpus_bucket: str

    def environment(self, function: str) -> dict[str, str]:
        """The template's variables for a function, and where the local servers are."""
        return {
            **self.template.environment(function),
            **self.aws.environment,
            "HAYFORK_AWS_S3_ENDPOINT": self.aws.s3_endpoint,
            "HAYFORK_AWS_DYNAMODB_ENDPOINT": self.aws.dynamodb_endpoint,
        }

    def run(
        self,
        function: str,
        *,
        environment: Mapping[str, str] | None = None,
        gate: RestoreGate | None = None,
        preload: str = "",
    ) -> AbstractContextManager[Function]:
        """A container of a function of the template, in its own environment unless another is given."""
        properties = self.template.resources[function]["Properties"]
        return lambda_function(
            self.artifact,
            properties["Handler"],
            environment or self.environment(function),
            memory_mb=int(properties["MemorySize"]),
            timeout_seconds=properties["Timeout"],
            gate=gate,
            preload=preload,
        )

    def upload(self, path: Path) -> None:
        """Put a file where the refresh looks."""
        prefix = self.template.parameters["SourcePrefix"]
        self.aws.s3().upload_file(str(path), self.source_bucket, f"{prefix}{path.name}")


@contextmanager
def _deployed(aws: LocalAws, artifact: Path, architecture: str) -> Iterator[Deployment]:
    suffix = uuid4().hex[:12]
    names = {
        "SourceBucket": f"sources-{suffix}",
        "CorpusBucket": f"corpus-{suffix}",
        "SeenTable": f"seen-{suffix}",
        "LockTable": f"lock-{suffix}",
        "KeysTable": f"keys-{suffix}",
        "UsageTable": f"usage-{suffix}",
        "InvokeFunctionAliaslive": "",
    }
    template = load_template(names, Architecture=architecture, SourceOptions=ROLES, PublicUrl="https://hayfork.test")
    for bucket in ("SourceBucket", "CorpusBucket"):
        aws.s3().create_bucket(Bucket=names[bucket])
    tables = template.of_type("AWS::DynamoDB::Table")
    for table, properties in tables.items():
        aws.dynamodb().create_table(
            TableName=names[table],
            **{key: properties[key] for key in ("BillingMode", "AttributeDefinitions", "KeySchema")},
        )
    yield Deployment(aws, template, artifact, names["SourceBucket"], names["CorpusBucket"])
    for table in tables:
        aws.dynamodb().delete_table(TableName=names[table])


@pytest.fixture(scope="session")
def new_deployment(
    local_aws: LocalAws, artifact: Path, architecture: str
) -> Callable[[], AbstractContextManager[Deployment]]:
    """Makes a deployment with nothing in it."""
    return lambda: _deployed(local_aws, artifact, architecture)


@pytest.fixture(scope="session")
def deployment(new_deployment: Callable[[], AbstractContextManager[Deployment]]) -> Iterator[Deployment]:
    """One that has read the fabric slice, by its own refresh function."""
    with new_deployment() as made:
        made.upload(FABRIC)
        with made.run("RefreshFunction") as refresh:
            report = refresh.invoke({})
        assert report["published"], report
        yield made
