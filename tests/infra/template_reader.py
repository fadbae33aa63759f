"""template.yaml as data: its resources, and what its expressions come to for given parameters.

Knows the functions the template uses and refuses others. A reference to a resource comes to what `names` says, else
to the resource's own name in angle brackets, its attributes to `<Name.Attribute>`.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["NOTHING", "Template", "load_template"]

ROOT = Path(__file__).resolve().parents[2]
NOTHING = object()
"""What `AWS::NoValue` comes to: the property is left out."""

_PSEUDO = {
    "AWS::Region": "us-east-1",
    "AWS::AccountId": "000000000000",
    "AWS::Partition": "aws",
    "AWS::StackName": "hayfork",
    "AWS::URLSuffix": "amazonaws.com",
}


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, each as the mapping of its long form."""


def _short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        return {name: value.split(".", 1) if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    raise TypeError(suffix)


_Loader.add_multi_constructor("!", _short_form)


class Template:
    """The template for a set of parameters; unnamed ones have their defaults."""

    def __init__(self, raw: dict[str, Any], parameters: Mapping[str, str], names: Mapping[str, str]) -> None:
        self.raw = raw
        self.names = names
        self.parameters = {
            name: str(parameters.get(name, spec.get("Default"))) for name, spec in raw["Parameters"].items()
        }

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources whose condition holds, with every expression resolved; globals are in the functions."""
        found = {}
        for name, resource in self.raw["Resources"].items():
            if "Condition" in resource and not self._holds(resource["Condition"]):
                continue
            found[name] = self.value(resource)
            if resource["Type"] == "AWS::Serverless::Function":
                shared = self.value(self.raw["Globals"]["Function"])
                own = found[name]["Properties"]
                variables = {
                    **shared.get("Environment", {}).get("Variables", {}),
                    **own.get("Environment", {}).get("Variables", {}),
                }
                found[name]["Properties"] = {**shared, **own, "Environment": {"Variables": variables}}
        return found

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """The properties of all resources of a type."""
        return {name: r["Properties"] for name, r in self.resources.items() if r["Type"] == kind}

    def environment(self, function: str) -> dict[str, str]:
        """The variables of a function."""
        variables: dict[str, str] = self.resources[function]["Properties"]["Environment"]["Variables"]
        return variables

    def statements(self, role: str) -> list[dict[str, Any]]:
        """All statements of a role's own policies; actions and resources as lists."""
        found = []
        for policy in self.resources[role]["Properties"]["Policies"]:
            for statement in policy["PolicyDocument"]["Statement"]:
                lists = {key: _listed(statement[key]) for key in ("Action", "Resource")}
                found.append({**statement, **lists})
        return found

    def refusals(self) -> list[str]:
        """What the rules say against the parameters, and the names of those outside their patterns and values."""
        found = [
            assertion["AssertDescription"]
            for rule in self.raw["Rules"].values()
            if self._true(rule["RuleCondition"])
            for assertion in rule["Assertions"]
            if not self._true(assertion["Assert"])
        ]
        for name, spec in self.raw["Parameters"].items():
            value = self.parameters[name]
            allowed = [str(each) for each in spec.get("AllowedValues", [value])]
            if value not in allowed or not re.fullmatch(spec.get("AllowedPattern", "(?s:.*)"), value):
                found.append(name)
        return found

    def value(self, node: Any) -> Any:
        """A piece of the template, resolved."""
        if isinstance(node, list):
            return [v for v in map(self.value, node) if v is not NOTHING]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            ((name, argument),) = node.items()
            if name == "Ref":
                return self._reference(argument)
            if name.startswith("Fn::"):
                return self._function(name.removeprefix("Fn::"), argument)
        resolved = {key: self.value(value) for key, value in node.items()}
        return {key: value for key, value in resolved.items() if value is not NOTHING}

    def _reference(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NOTHING
        if name in self.parameters:
            return self.parameters[name]
        return _PSEUDO.get(name) or self.names.get(name) or f"<{name}>"

    def _function(self, name: str, argument: Any) -> Any:
        if name == "Sub":
            return re.sub(r"\$\{([^}]+)\}", lambda m: str(self._inner(m[1])), argument)
        if name == "GetAtt":
            return self._inner(".".join(argument))
        if name == "If":
            condition, then, other = argument
            return self.value(then if self._holds(condition) else other)
        raise NotImplementedError(name)

    def _inner(self, name: str) -> Any:
        if "." not in name:
            return self._reference(name)
        return self.names.get(name) or f"<{name}>"

    def _holds(self, condition: str) -> bool:
        return self._true(self.raw["Conditions"][condition])

    def _true(self, node: dict[str, Any]) -> bool:
        ((name, argument),) = node.items()
        if name == "Condition":
            return self._holds(argument)
        if name == "Fn::Equals":
            left, right = map(self.value, argument)
            return str(left) == str(right)
        if name == "Fn::Contains":
            choices, value = argument
            return self.value(value) in choices
        if name == "Fn::Not":
            return not self._true(argument[0])
        if name == "Fn::And":
            return all(map(self._true, argument))
        raise NotImplementedError(name)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@cache
def _raw() -> dict[str, Any]:
    raw: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text("utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    return raw


def load_template(names: Mapping[str, str] | None = None, **parameters: str) -> Template:
    """The project's template for these parameters."""
    return Template(_raw(), parameters, names or {})
