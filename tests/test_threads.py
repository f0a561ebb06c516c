"""The limit on the threads of numerical libraries."""

from labelweave.threads import bounded_threads


def test_threads_are_bounded_inside_and_given_back():
    import torch
    from threadpoolctl import threadpool_info

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with bounded_threads(1):
        assert torch.get_num_threads() == 1
        assert all(pool["num_threads"] == 1 for pool in threadpool_info())
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
