"""Adding, removing and renaming labels while a model is served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import methodcaller

from labelweave.exceptions import InputError
from labelweave.serve.batching import QueueFullError, StoppedError
from labelweave.serve.loaded_model import LoadedModel
from labelweave.serve.model_process import ModelCrashedError
from labelweave.serve.problems import ProblemError
from labelweave.serve.served_models import ServedModel
from labelweave.serve.state.service_store import Change, ConflictError, Store

__all__ = ["apply_changes", "catch_up", "change_labels", "replay"]

_ATTEMPTS = 5
_log = logging.getLogger("labelweave.serve")


def apply_changes(loaded: LoadedModel, changes: Iterable[Change]) -> None:
    """Change the labels of the model in memory; consecutive additions are embedded together."""
    functions: list[methodcaller] = []
    for kind, group in groupby(changes, key=lambda change: change.kind):
        members = list(group)
        names = [change.name for change in members]
        if kind == "add":
            descriptions = {change.name: change.description or "" for change in members}
            functions.append(methodcaller("add_labels", names, descriptions))
        elif kind == "remove":
            functions.append(methodcaller("remove_labels", names))
        else:
            functions += [
                methodcaller("rename_label", change.name, change.new_name, change.description)
                for change in members
            ]
    loaded.change(functions)


def replay(loaded: LoadedModel, changes: Sequence[tuple[int, Change]]) -> None:
    """Apply the stored changes that follow the version of a model.

    A model that was trained again may already have an added label, or lack a renamed one. Changes
    that do not apply are skipped with a warning in the log.
    """
    if not changes:
        return
    loaded.version = changes[-1][0]
    if not loaded.facts.can_change_labels:
        _log.warning("skipped label changes of a model whose labels are fixed")
        return
    names = set(loaded.label_names)
    applicable = []
    for _, change in changes:
        if _refusal(change, names) is None:
            applicable.append(change)
            _update(names, change)
        else:
            _log.warning("skipped a label change (%s) that does not fit the model", change.kind)
    apply_changes(loaded, applicable)


def _refusal(change: Change, names: set[str]) -> str | None:
    """Return why a change cannot be made to labels of these names, or None if it can be made."""
    if change.kind == "add":
        added = change.name
    elif change.name not in names:
        return f"There is no label {change.name[:80]!r}."
    elif change.kind == "remove":
        return "The last label cannot be removed." if len(names) == 1 else None
    else:
        added = change.new_name or change.name
        if added == change.name:
            return None
    return f"There already is a label {added[:80]!r}." if added in names else None


def _update(names: set[str], change: Change) -> None:
    if change.kind != "add":
        names.discard(change.name)
    if change.kind != "remove":
        names.add(change.new_name or change.name)


def _check(changes: Sequence[Change], loaded: LoadedModel) -> None:
    """Refuse changes that the labels do not allow, before any of them is made."""
    names = set(loaded.label_names)
    for change in changes:
        if refusal := _refusal(change, names):
            raise ProblemError(409, refusal)
        _update(names, change)


async def change_labels(
    served: ServedModel, store: Store, changes: Sequence[Change], by: str
) -> int:
    """Apply changes, store them and return the new version of the labels.

    Once this returns, the changes survive a crash of the service.
    """
    await served.loaded()
    async with served.lock:  # changes of one model are made one after the other
        for _ in range(_ATTEMPTS):
            loaded = served.current
            assert loaded is not None
            if not loaded.facts.can_change_labels:
                raise ProblemError(
                    409,
                    "The labels of this model are fixed: its method needs examples of each label.",
                )
            try:
                return await loaded.batcher.call(
                    partial(_apply_and_store, served, loaded, store, changes, by)
                )
            except (ProblemError, InputError):
                raise
            except ModelCrashedError:
                raise served.crashed(loaded) from None
            except QueueFullError:
                raise served.queue_full() from None
            except StoppedError:
                raise served.stopping() from None
            except ConflictError:
                _log.info("another replica changed the labels of %s at the same time", served.name)
                await asyncio.sleep(0.01)
                await served.replace()
            except Exception:
                # The model in memory may have changes that the database lacks. It answers nothing
                # more; one with the labels that were stored before takes its place.
                served.drop(loaded)
                with suppress(Exception):  # the next request tries again
                    await served.replace()
                raise
    raise ProblemError(409, "Other clients are changing the labels; try again.", Retry_After="1")


def _apply_and_store(
    served: ServedModel, loaded: LoadedModel, store: Store, changes: Sequence[Change], by: str
) -> int:
    """Runs on the model's thread, so that no prediction uses a label that is not stored."""
    _replay_new(served, loaded, store)
    _check(changes, loaded)
    try:
        apply_changes(loaded, changes)
        version = store.add_changes(served.name, loaded.version, changes, by)
    except InputError:  # the model refuses the changes
        raise
    except Exception:
        loaded.give_up()
        raise
    served.changes += enumerate(changes, start=loaded.version + 1)
    loaded.version = version
    return version


def _replay_new(served: ServedModel, loaded: LoadedModel, store: Store) -> None:
    """Apply the changes that other replicas have stored."""
    changes = store.changes(served.name, loaded.version)
    replay(loaded, changes)
    served.changes += changes


async def catch_up(served: ServedModel, store: Store) -> None:
    """Apply the changes of other replicas."""
    async with served.lock:
        loaded = served.current
        if loaded is None:
            return
        try:
            await loaded.batcher.call(partial(_replay_new, served, loaded, store))
        except ModelCrashedError:
            served.crashed(loaded)
