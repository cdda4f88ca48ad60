import numpy as np
import pytest
import torch
from paper.rivals.networks import MeanGapPenalty
from paper.rivals.penalties import SquaredMeanGap
from synthetic import people, rows_of
from torch import nn

from fairmatch.exceptions import TrainingInterruptedWarning
from fairmatch.learning.networks import (
    MIN_STEPS_PER_EPOCH,
    Batch,
    NeuralNetwork,
    Objective,
    StackedMLP,
    pair_batches,
)
from fairmatch.learning.progress import TrainingProgress
from fairmatch.people.groups import CRITERIA


class Once:
    """The same batch in every step; fails at one step of all if asked to."""

    def __init__(self, fail_at=None):
        self.step, self.fail_at = 0, fail_at

    def epoch(self, n_steps):
        for _ in range(n_steps):
            if self.step == self.fail_at:
                raise KeyboardInterrupt
            self.step += 1
            yield Batch(np.arange(4), np.full(4, 0.25, dtype=np.float32))


class Parabola(nn.Module):
    """Terms of shape (2, 1) whose sum is (x - 3)²."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.zeros(1))

    def forward(self, batch):
        return torch.stack([(self.x - 3.0) ** 2, torch.zeros(1)])


def descend(objective, batches, epochs, n_rows=1, **settings):
    network = NeuralNetwork(epochs=epochs, decay=settings.pop("decay", 1.0), **settings)
    seed = np.random.SeedSequence(0)
    return network.descend(objective, batches, n_rows, np.array([0.0]), seed)


def test_it_is_adam_with_a_decay_after_each_epoch():
    objective, reference = Parabola(), torch.zeros(1, requires_grad=True)
    assert descend(objective, Once(), 3, learning_rate=0.1, decay=0.5) == 3
    optimizer = torch.optim.Adam([reference], lr=0.1)
    for epoch in range(3):
        optimizer.param_groups[0]["lr"] = 0.1 * 0.5**epoch
        for _ in range(MIN_STEPS_PER_EPOCH):
            optimizer.zero_grad()
            ((reference - 3.0) ** 2).sum().backward()
            optimizer.step()
    torch.testing.assert_close(objective.x, nn.Parameter(reference.detach()))


def test_the_terms_of_an_epoch_are_reported(monkeypatch):
    seen = []
    monkeypatch.setattr(
        TrainingProgress, "update", lambda self, epoch, terms: seen.append((epoch, terms()))
    )
    descend(Parabola(), Once(), 2, learning_rate=1e-9)
    assert [epoch for epoch, _ in seen] == [0, 1]
    np.testing.assert_allclose(seen[0][1], [[9.0], [0.0]], rtol=1e-6)


@pytest.mark.parametrize("where", ["batches", "progress"])
@pytest.mark.parametrize("keep", [False, True])
def test_ctrl_c(where, keep, monkeypatch):
    def stop(self, epoch, terms):
        if where == "progress" and epoch == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(TrainingProgress, "update", stop)
    objective = Parabola()
    batches = Once(fail_at=2 * MIN_STEPS_PER_EPOCH + 2 if where == "batches" else None)
    arguments = {"learning_rate": 0.1, "keep_on_interrupt": keep}
    if keep:
        with pytest.warns(TrainingInterruptedWarning, match="after 2 of 5"):
            assert descend(objective, batches, 5, **arguments) == 2
        assert objective.x.item() > 0.5
    else:
        with pytest.raises(KeyboardInterrupt):
            descend(objective, batches, 5, **arguments)


@pytest.mark.parametrize(
    ("n_rows", "batch_size", "steps"), [(36_178, 1024, 36), (800, 200, 16), (64, 1, 64), (5, 9, 16)]
)
def test_an_epoch_goes_over_the_table_and_is_long_enough_to_learn(n_rows, batch_size, steps):
    batches = Once()
    descend(Parabola(), batches, 1, n_rows, batch_size=batch_size)
    assert batches.step == steps >= MIN_STEPS_PER_EPOCH


def test_networks_of_a_stack_are_trained_as_if_each_were_alone():
    X, y, group = people()
    inputs, weights = np.column_stack([X, group]), [0.0, 1.0, 20.0]

    def trained(fairness_weights):
        network = StackedMLP(len(fairness_weights), 5, (6,), torch.Generator().manual_seed(0))
        rows, generator = rows_of(inputs, y, group), np.random.default_rng(0)
        parts = rows.comparisons(CRITERIA["demographic_parity"])
        formula = SquaredMeanGap(parts, rows)
        penalty = MeanGapPenalty(torch.tensor(fairness_weights), formula)
        batches = pair_batches(parts, np.ones(len(y)), 32, generator)
        descend(Objective(network, inputs, y, penalty), batches, 2, learning_rate=0.01)
        return network(torch.as_tensor(inputs, dtype=torch.float32)).detach()

    together = trained(weights)
    assert (together[0] - together[2]).abs().max() > 0.01
    for row, weight in zip(together, weights, strict=True):
        torch.testing.assert_close(row, trained([weight])[0], rtol=1e-4, atol=1e-5)


class TestProgress:
    TERMS = np.array([[0.5, 0.6], [0.0, 0.2]])

    def show(self):
        with TrainingProgress(3, np.array([0.0, 2.0]), verbose=1) as progress:
            progress.update(0, lambda: self.TERMS)

    def test_silent_where_there_is_no_terminal(self, capsys):
        self.show()
        assert capsys.readouterr() == ("", "")

    def test_a_terminal_shows_losses_and_gaps(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")
        self.show()
        shown = capsys.readouterr().err
        assert "λ=0: loss 0.5000" in shown
        assert "λ=2: loss 0.6000 penalty 0.1000" in shown

    def test_a_bar_that_has_ended_does_not_stay(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")
        self.show()
        assert capsys.readouterr().err.endswith("\x1b[1A\x1b[2K")  # up, and clear the line

    def test_rounds_are_called_rounds(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")
        with TrainingProgress(3, np.array([2.0]), verbose=1, unit="round") as progress:
            progress.update(0, lambda: self.TERMS)
        assert "round 1/3" in capsys.readouterr().err

    def test_silent_where_not_asked_for(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        with TrainingProgress(3, np.array([0.0, 2.0]), verbose=0) as progress:
            progress.update(0, lambda: self.TERMS)
        assert capsys.readouterr() == ("", "")

    def test_by_default_a_terminal_shows_what_takes_long(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "200")
        now = iter([0.0, 1.9, 2.1, 2.1])
        monkeypatch.setattr("fairmatch.learning.progress.time.perf_counter", lambda: next(now))
        with TrainingProgress(3, np.array([0.0, 2.0])) as progress:
            progress.update(0, lambda: self.TERMS)
            assert "loss" not in capsys.readouterr().err
            progress.update(1, lambda: self.TERMS)
        assert "epoch 2/3" in capsys.readouterr().err

    def test_looking_takes_a_fiftieth_of_the_time(self, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        now = [0.0]
        monkeypatch.setattr("fairmatch.learning.progress.time.perf_counter", lambda: now[0])

        def look():
            now[0] += 0.1  # it takes as long as a round itself
            looks.append(now[0])
            return self.TERMS

        looks = []
        with TrainingProgress(1000, np.array([0.0, 2.0]), verbose=1) as progress:
            for epoch in range(1000):
                now[0] += 0.1
                progress.update(epoch, look)
        assert 0.1 * len(looks) <= 0.03 * now[0]
        assert len(looks) >= 10
