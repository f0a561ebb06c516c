"""`--config file.toml`: the options of a command as a file; the command line goes before it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from labelweave.exceptions import DataFileError
from labelweave.pipeline.parameters import check_names

# Section and key of the file to the option it stands for.
OPTIONS = {
    "data": {
        "source": "data",
        "test": "test",
        "format": "format",
        "labels": "labels",
        "label_column": "label_column",
        "drop": "drop",
        "kinds": "kinds",
        "groups": "group_column",
        "weight": "weight_column",
        "encoding": "encoding",
        "decimal": "decimal",
        "delimiter": "separator",
        "sheet": "sheet",
        "on_error": "on_error",
        "options": "data_options",
    },
    "method": {"name": "method", "threshold": "threshold"},
    "protocol": {
        "split": "split",
        "test_size": "test_size",
        "validation": "validation",
        "seed": "seed",
        "metric": "metric",
    },
    "output": {"folder": "out", "per_label": "per_label"},
}
FREE_SECTION = "parameters"


def config_option(command: Any) -> Any:
    """`--config`, whose values become the defaults of the other options."""
    return click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        is_eager=True,
        callback=_use_config,
        help="TOML file with [data], [method], [parameters], [protocol] and [output]; options "
        "given on the command line override it.",
    )(command)


def _use_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> dict[str, Any]:
    """Make the file's values the defaults of this call; return its [parameters]."""
    if path is None:
        return {}
    config = read_config(path)
    known = {parameter.name for parameter in ctx.command.params}
    defaults = {
        option: config[section][key]
        for section, keys in OPTIONS.items()
        for key, option in keys.items()
        if key in config.get(section, {}) and option in known
    }
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    free = config.get(FREE_SECTION, {})
    return {name: None if value == "none" else value for name, value in free.items()}


def read_config(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The sections of a configuration file, every section and key of them known."""
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataFileError(f"not valid TOML: {error}", path=path) from None
    check_names(config, [*OPTIONS, FREE_SECTION], f"section in {path} called")
    for section, values in config.items():
        if not isinstance(values, Mapping):
            raise DataFileError(f"{section!r} must be a section, [{section}]", path=path)
        if section != FREE_SECTION:
            check_names(values, OPTIONS[section], f"key in [{section}] of {path} called")
    return config
