"""What the tests of faults share: the corpus, and servers behind proxies, a pair for each tool."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contracts.benches import new_bucket, new_table
from tests.faults.bench import TOOLS, Corpus, Deployment, Scene, load_unchecked, make_corpus, plant_snapshots
from tests.faults.proxy import proxy_to
from tests.local_aws import LocalAws


@pytest.fixture(scope="session", autouse=True)
def _quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        load_unchecked(patch)
        yield


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def deployments(local_aws: LocalAws) -> Iterator[dict[str, Deployment]]:
    """One for each tool, so that all may be tried at once: much of a fault is waiting."""
    bucket, table = new_bucket(local_aws).bucket, new_table(local_aws)
    with ExitStack() as stack:
        yield {
            tool: Deployment(
                local_aws,
                stack.enter_context(proxy_to(local_aws.s3_endpoint)),
                stack.enter_context(proxy_to(local_aws.dynamodb_endpoint)),
                bucket,
                table,
            )
            for tool in TOOLS
        }


@pytest.fixture(scope="session")
def well(
    deployments: dict[str, Deployment], corpus: Corpus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Scene]]:
    """For each tool a process over a root of its own, which has opened the newer of two snapshots there."""
    temp = tmp_path_factory.mktemp("temp")

    def opened(tool: str) -> Scene:
        stores = deployments[tool].stores(f"{tool}/")
        plant_snapshots(stores, corpus)
        return Scene(stores, corpus.table, temp)

    with ThreadPoolExecutor(len(TOOLS)) as pool, ExitStack() as stack:
        scenes = dict(zip(TOOLS, pool.map(opened, TOOLS), strict=True))
        for scene in scenes.values():
            stack.enter_context(scene.closing())
        yield scenes


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "temp"
    folder.mkdir()
    return folder
