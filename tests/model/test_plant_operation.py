"""An operation has ended in its final states only."""

import pytest

from edge.model.plant import Operation, OperationState, OperationType


@pytest.mark.parametrize("state", OperationState)
def test_final_states_have_ended(state: OperationState) -> None:
    operation = Operation(id="1", type=OperationType.BACKUP, state=state, by="anna", due=0, created=0)
    assert operation.has_ended is (state in {"done", "failed", "cancelled"})
