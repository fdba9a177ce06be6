"""All-gather of buffers on several ranks, with and without shared memory."""

import pytest

SCRIPT = __file__.replace("test_all", "run_all")


@pytest.mark.parametrize(
    ("node", "choice", "said"),
    [
        pytest.param(3, "auto", "by windows", marks=pytest.mark.quick),
        (2, "auto", "by messages"),
        (3, "messages", "by messages"),
        pytest.param(3, "peers", "by peers", marks=pytest.mark.quick),
        (3, "peers 100", "by windows"),  # for which devices have no room
    ],
)
def test_each_rank_has_the_numbers_of_all(mpirun, node, choice, said):
    """On one node, on two, and where nothing may be shared; rank 0 has none."""
    done = mpirun(3, SCRIPT, *choice.split(), env={"PETSC_HDG_NODE_RANKS": str(node)})
    assert done.stdout == f"nothing, {said}, {said}\n"
