"""Labels that come, go and change their names while a model is served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby

from labelweave.exceptions import InputError
from labelweave.serve.batching import QueueFullError, StoppedError
from labelweave.serve.loaded import LoadedModel
from labelweave.serve.models import ServedModel
from labelweave.serve.problems import ProblemError
from labelweave.serve.state.store import Change, ConflictError, Store

__all__ = ["apply_changes", "catch_up", "change_labels", "replay"]

_ATTEMPTS = 5
_log = logging.getLogger("labelweave.serve")


def apply_changes(loaded: LoadedModel, changes: Iterable[Change]) -> None:
    """Change the labels of the model in memory; labels added in a row are embedded together."""
    model = loaded.model
    for kind, group in groupby(changes, key=lambda change: change.kind):
        same = list(group)
        if kind == "add":
            model.add_labels([c.name for c in same], {c.name: c.description or "" for c in same})
        elif kind == "remove":
            model.remove_labels([c.name for c in same])
        else:
            for change in same:
                model.rename_label(change.name, change.new_name, change.description)


def replay(loaded: LoadedModel, log: Sequence[tuple[int, Change]]) -> None:
    """Bring a model to the state of the log.

    A model that was trained anew may have a label of the log already, or no longer: what cannot
    be done is left out and said in the service's log.
    """
    if not log:
        return
    loaded.version = log[-1][0]
    if not loaded.can_change:
        _log.warning("label changes are kept for a model that takes none: they are left out")
        return
    names = set(loaded.label_names)
    possible = []
    for _, change in log:
        if _is_possible(change, names):
            possible.append(change)
            _follow(change, names)
        else:
            _log.warning("a label change (%s) does not fit the model: left out", change.kind)
    apply_changes(loaded, possible)


def _is_possible(change: Change, names: set[str]) -> bool:
    if change.kind == "add":
        return change.name not in names
    if change.kind == "remove":
        return change.name in names and len(names) > 1
    return change.name in names and (change.new_name == change.name or change.new_name not in names)


def _follow(change: Change, names: set[str]) -> None:
    if change.kind != "add":
        names.discard(change.name)
    if change.kind != "remove":
        names.add(change.new_name or change.name)


def _check(changes: Sequence[Change], loaded: LoadedModel) -> None:
    """Refuse what the labels do not allow, before anything is done."""
    names = set(loaded.label_names)
    for change in changes:
        if not _is_possible(change, names):
            raise ProblemError(409, _refusal(change, names))
        _follow(change, names)


def _refusal(change: Change, names: set[str]) -> str:
    if change.kind == "add":
        return f"There is a label {change.name[:80]!r} already."
    if change.name not in names:
        return f"There is no label {change.name[:80]!r}."
    if change.kind == "remove":
        return "The last label cannot be removed."
    return f"There is a label {str(change.new_name)[:80]!r} already."


async def change_labels(
    served: ServedModel, store: Store, changes: Sequence[Change], by: str
) -> int:
    """Apply changes and keep them; when this returns they survive any stop of the service.

    Returns
    -------
    int
        The new version of the model's labels.
    """
    await served.loaded()
    async with served.lock:  # changes of one model follow each other
        for _ in range(_ATTEMPTS):
            loaded = served.current
            assert loaded is not None
            if not loaded.can_change:
                raise ProblemError(
                    409, "The labels of this model are fixed: it needs examples of each."
                )
            try:
                return await loaded.batcher.call(
                    partial(_apply_and_keep, served.name, loaded, store, changes, by)
                )
            except (ProblemError, InputError):
                raise
            except QueueFullError:
                raise served.busy() from None
            except StoppedError:
                raise served.leaving() from None
            except ConflictError:
                _log.info("another replica changed the labels of %s first", served.name)
                await asyncio.sleep(0.01)
                await served.replace()
            except Exception:
                # The model may hold what the database does not: read both again.
                await served.replace()
                raise
    raise ProblemError(409, "The labels are being changed by others; try again.", Retry_After="1")


def _apply_and_keep(
    name: str, loaded: LoadedModel, store: Store, changes: Sequence[Change], by: str
) -> int:
    """On the model's thread, so that no prediction sees a label that is not kept."""
    replay(loaded, store.changes(name, loaded.version))
    _check(changes, loaded)
    apply_changes(loaded, changes)
    loaded.version = store.add_changes(name, loaded.version, changes, by)
    return loaded.version


async def catch_up(served: ServedModel, store: Store) -> None:
    """Apply what other replicas have changed."""
    async with served.lock:
        loaded = served.current
        if loaded is None:
            return
        await loaded.batcher.call(
            lambda: replay(loaded, store.changes(served.name, loaded.version))
        )
