"""What `make deploy` tells SAM: which parameters, and a revision that changes with whatever is deployed."""

from pathlib import Path

import pytest

from infra.deploy.deploy_stack import given_parameters, revision_of


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    (folder / "McpFunction" / "handler").mkdir(parents=True)
    (folder / "template.yaml").write_text("Parameters: {}\n")
    (folder / "McpFunction" / "handler" / "app.py").write_text("x = 1\n")
    return folder


def test_the_revision_changes_with_code_names_template_and_parameters_alone(built: Path) -> None:
    code = built / "McpFunction" / "handler" / "app.py"
    seen = [revision_of(built, {"Policies": "[]"})]
    assert revision_of(built, {"Policies": "[]"}) == seen[0]
    (built / "deployed.yaml").write_text("what the last deployment left")
    assert revision_of(built, {"Policies": "[]"}) == seen[0]
    seen.append(revision_of(built, {"Policies": '[{"callers": ["key:*"]}]'}))
    seen.append(revision_of(built, {"Policies": "[]", "CorpusName": "a"}))
    code.write_text("x = 2\n")
    seen.append(revision_of(built, {"Policies": "[]"}))
    code.rename(code.with_name("b.py"))
    seen.append(revision_of(built, {"Policies": "[]"}))
    (built / "template.yaml").write_text("Parameters: {A: {}}\n")
    seen.append(revision_of(built, {"Policies": "[]"}))
    assert len(set(seen)) == len(seen)
    assert all(len(each) == 64 for each in seen)


def test_the_order_of_parameters_makes_no_revision(built: Path) -> None:
    assert revision_of(built, {"A": "1", "B": "2"}) == revision_of(built, {"B": "2", "A": "1"})


def test_words_come_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "parameters.toml"
    assert given_parameters(["A=b=c", "B="], file) == {"A": "b=c", "B": ""}
    file.write_text("A = 'x'\nMcpMemory = 2048\nExplain = true\nPolicies = '''[{\"callers\": [\"key:*\"]}]'''\n")
    assert given_parameters(["A=b"], file) == {
        "A": "b",
        "McpMemory": "2048",
        "Explain": "true",
        "Policies": '[{"callers": ["key:*"]}]',
    }


@pytest.mark.parametrize("word", ["Policies", "=1", "a b=1", "Revision=1", "Architecture=arm64"])
def test_what_is_no_parameter_or_is_filled_in_is_refused(word: str) -> None:
    with pytest.raises(SystemExit):
        given_parameters([word])


def test_make_deploy_builds_first_and_passes_the_architecture_it_built_for() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")
    target = makefile[makefile.index("\ndeploy: build\n") :].split("\n\n")[0]
    assert "infra/deploy/deploy_stack.py --architecture $(ARCHITECTURE) $(PARAMETERS)" in target
    assert "--parameter-overrides Architecture=$(ARCHITECTURE)" in makefile
