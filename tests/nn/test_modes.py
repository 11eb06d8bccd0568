"""Evaluation mode for a while."""

import pytest
from torch import nn

from bertsmith.nn import evaluating


def test_each_module_is_afterwards_in_the_mode_that_it_was_in_before() -> None:
    learning, done = nn.Dropout(), nn.Dropout().eval()
    with evaluating(learning, done):
        assert not learning.training
        assert not done.training
    assert learning.training
    assert not done.training


def test_an_error_inside_does_not_leave_a_module_in_evaluation_mode() -> None:
    learning = nn.Sequential(nn.Dropout())
    with pytest.raises(KeyError), evaluating(learning):
        raise KeyError
    assert learning.training
    assert learning[0].training
