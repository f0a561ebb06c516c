"""Requests that wait are processed as one batch."""

import asyncio
import threading

import pytest

from labelweave.serve.batching import Batcher, QueueFullError, StoppedError


def run(main):
    return asyncio.run(asyncio.wait_for(main(), 300))


def test_waiting_requests_form_batches_in_order():
    sizes = []

    def double(batch):
        sizes.append(len(batch))
        return [2 * one for one in batch]

    async def main():
        batcher = Batcher(double, max_batch=8)
        results = await asyncio.gather(*(batcher.submit(i, rows=1) for i in range(20)))
        await batcher.close()
        return results

    assert run(main) == [2 * i for i in range(20)]
    assert sizes == [8, 8, 4]


def test_a_large_request_is_a_batch_of_its_own():
    seen = []

    async def main():
        batcher = Batcher(lambda batch: [seen.append(list(batch))] * len(batch), max_batch=4)
        await asyncio.gather(*(batcher.submit(n, rows=n) for n in (1, 9, 2)))
        await batcher.close()

    run(main)
    assert [9] in seen


def submit_three(run_batch):
    """The results of the requests "a", "bad" and "b", which wait for one batch."""

    async def main():
        batcher = Batcher(run_batch)
        jobs = [batcher.submit(one, rows=1) for one in ("a", "bad", "b")]
        results = await asyncio.gather(*jobs, return_exceptions=True)
        await batcher.close()
        return results

    return run(main)


def test_an_error_affects_only_its_own_request():
    def run_batch(batch):
        if "bad" in batch:
            raise ValueError("bad")
        return batch

    first, error, last = submit_three(run_batch)
    assert (first, last) == ("a", "b")
    assert isinstance(error, ValueError)


def test_a_result_that_is_an_error_is_raised_and_nothing_is_tried_again():
    seen = []

    def run_batch(batch):
        seen.append(list(batch))
        return [ValueError("bad") if one == "bad" else one for one in batch]

    first, error, last = submit_three(run_batch)
    assert (first, last) == ("a", "b")
    assert isinstance(error, ValueError)
    assert seen == [["a", "bad", "b"]]


def test_a_full_queue_refuses_and_close_finishes_accepted_requests():
    started, may_finish = threading.Event(), threading.Event()

    def slow(batch):
        started.set()
        may_finish.wait(300)
        return batch

    async def main():
        batcher = Batcher(slow, max_batch=1, max_queue=2)
        first = asyncio.create_task(batcher.submit(0, rows=1))
        await asyncio.to_thread(started.wait, 300)
        waiting = [asyncio.create_task(batcher.submit(i, rows=1)) for i in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.submit(3, rows=1)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(StoppedError):
            await batcher.submit(4, rows=1)
        may_finish.set()
        results = await asyncio.gather(first, *waiting)
        await closing
        return results

    assert run(main) == [0, 1, 2]


def test_a_call_runs_between_batches_and_a_cancelled_request_disturbs_no_other():
    log = []

    def batch(contents):
        log.append(("batch", list(contents)))
        return contents

    async def main():
        batcher = Batcher(batch)
        gone = asyncio.create_task(batcher.submit("gone", rows=1))
        call = asyncio.create_task(batcher.call(lambda: log.append("call")))
        last = asyncio.create_task(batcher.submit("last", rows=1))
        await asyncio.sleep(0)
        gone.cancel()
        await call
        result = await last
        await batcher.close()
        return result

    assert run(main) == "last"
    assert log[1:] == ["call", ("batch", ["last"])]
