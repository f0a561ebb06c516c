"""`labelweave methods`: which methods there are and what can be set on them."""

from __future__ import annotations

import click

from labelweave.cli.options import output_options
from labelweave.cli.output import Output
from labelweave.methods import ROOMS, list_methods


@click.command("methods")
@click.argument("name", required=False)
@click.option("--room", type=click.Choice(ROOMS), help="Only the methods for such labels.")
@output_options
def command(name: str | None, room: str | None, as_json: bool, quiet: bool) -> None:
    """List the methods, or describe the one called NAME and its parameters."""
    output = Output(as_json, quiet)
    if name is not None:
        _describe(name, output)
        return
    methods = list_methods(room)
    output.result([{"id": m.id, "labels": m.room, "summary": m.summary} for m in methods])
    if not as_json:
        rows = [(m.id, m.room, m.summary) for m in methods]
        output.table(("method", "labels are", "what it is"), rows)
        output.say("\n`labelweave methods NAME` shows the parameters of one.")


def _describe(name: str, output: Output) -> None:
    from labelweave.methods import get_class
    from labelweave.pipeline.parameters import describe_parameters, example_setting

    cls = get_class(name)
    method = next(m for m in list_methods() if m.id == name)
    parameters = describe_parameters(cls)
    example = example_setting(parameters)
    output.result(
        {
            "id": name,
            "labels": method.room,
            "class": f"{method.module}.{method.class_name}",
            "summary": method.summary,
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
    output.show(f"for {method.room} labels; class {method.module}.{method.class_name}\n")
    output.show("Parameters (set them with --set name=value)")
    for parameter in parameters:
        output.show(f"  {parameter.name} = {parameter.default!r}    {parameter.type}".rstrip())
        if parameter.doc:
            output.show(click.wrap_text(parameter.doc, 88, "      ", "      "))
    command = "amalgamate A/ B/ --data X.csv" if method.room == "scattered" else "train yeast"
    output.show(f"\nExample\n  labelweave {command} --method {name} --set {example}")
