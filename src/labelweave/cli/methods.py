"""`labelweave methods`: which methods there are and what can be set on them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from labelweave.cli.options import output_options
from labelweave.cli.output import Output
from labelweave.methods import ROOMS, Method, list_methods


@click.command("methods")
@click.argument("name", required=False)
@click.option("--room", type=click.Choice(ROOMS), help="Only the methods for such labels.")
@click.option(
    "--accepts",
    metavar="CAPABILITY",
    help="Only the methods with this capability: texts, images, known_labels, soft_targets, "
    "out_of_fold, new_labels or another one that `labelweave methods NAME` shows.",
)
@output_options
def command(
    name: str | None, room: str | None, accepts: str | None, as_json: bool, quiet: bool
) -> None:
    """List the methods, or describe the one called NAME, its capabilities and its parameters."""
    output = Output(as_json, quiet)
    if name is not None:
        _describe(name, output)
        return
    methods = list_methods(room)
    rows = [{"id": m.id, "labels": m.room, "summary": m.summary} for m in methods]
    if accepts is not None:
        rows = _with_capability(methods, accepts)
    output.result(rows)
    if as_json:
        return
    output.table(
        ("method", "labels are", "what it is"),
        [(row["id"], row["labels"], _summary_and_setting(row)) for row in rows],
    )
    output.say("\n`labelweave methods NAME` shows the capabilities and parameters of one.")


def _with_capability(methods: list[Method], capability: str) -> list[dict[str, Any]]:
    """The methods with a capability and all capabilities of each.

    Where a method has it only with another parameter, `setting` is that parameter.
    """
    from labelweave.capabilities import Capabilities, capabilities
    from labelweave.pipeline.parameters import check_names

    check_names([capability], asdict(Capabilities()), "capability")
    rows = []
    for method in methods:
        declared, setting = asdict(capabilities(method.load()())), ""
        if capability == "images" and not declared["images"]:
            declared, setting = _with_image_network(method)
        if declared[capability]:
            row = {"id": method.id, "labels": method.room, "summary": method.summary}
            rows.append({**row, "capabilities": declared, "setting": setting})
    return rows


def _summary_and_setting(row: dict[str, Any]) -> str:
    setting = row.get("setting")
    return f"{row['summary']} (--set {setting})" if setting else row["summary"]


def _with_image_network(method: Method) -> tuple[dict[str, bool], str]:
    """The capabilities of a method whose network is one for images, and the parameter for it."""
    from sklearn.utils._param_validation import InvalidParameterError

    from labelweave.capabilities import Capabilities, capabilities
    from labelweave.pipeline.recipe import Recipe, defaults

    for setting in ("encoder", "base__encoder"):
        if setting.partition("__")[0] in defaults(method.id):
            model = Recipe(method.id, {setting: "resnet18"}).make()
            try:
                model._validate_params()
            except InvalidParameterError:  # an encoder of another kind
                continue
            return asdict(capabilities(model)), f"{setting}=resnet18"
    return asdict(Capabilities()), ""


def _describe(name: str, output: Output) -> None:
    from labelweave.capabilities import capabilities
    from labelweave.methods import get_class
    from labelweave.pipeline.parameters import describe_parameters, example_setting

    cls = get_class(name)
    method = next(m for m in list_methods() if m.id == name)
    parameters = describe_parameters(cls)
    example = example_setting(parameters)
    declared = asdict(capabilities(cls()))
    output.result(
        {
            "id": name,
            "labels": method.room,
            "class": f"{method.module}.{method.class_name}",
            "summary": method.summary,
            "capabilities": declared,
            "parameters": [
                {"name": p.name, "default": p.default, "type": p.type, "doc": p.doc}
                for p in parameters
            ],
            "tuning_space": getattr(cls, "tuning_space", {}),
        }
    )
    if output.as_json:
        return
    output.show(f"{name}: {method.summary}")
    output.show(f"for {method.room} labels; class {method.module}.{method.class_name}")
    output.show(f"capabilities: {', '.join(name for name, has in declared.items() if has)}\n")
    output.show("Parameters (set them with --set name=value)")
    for parameter in parameters:
        output.show(f"  {parameter.name} = {parameter.default!r}    {parameter.type}".rstrip())
        if parameter.doc:
            output.show(click.wrap_text(parameter.doc, 88, "      ", "      "))
    command = "amalgamate A/ B/ --data X.csv" if method.room == "scattered" else "train yeast"
    output.show(f"\nExample\n  labelweave {command} --method {name} --set {example}")
