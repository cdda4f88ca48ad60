import pytest
import torch
from torch import nn

from fairmatch.exceptions import InputError
from fairmatch.learning.networks import NeuralNetwork, StackedMLP


def stack(n_networks=3, seed=0):
    network = StackedMLP(n_networks, 5, (4, 3), torch.Generator().manual_seed(seed))
    with torch.no_grad():  # apart, so that a mix-up shows
        for index, values in enumerate(network.parameters()):
            values += torch.arange(n_networks).reshape(-1, *[1] * (values.ndim - 1)) * 0.1 * index
    return network


def as_sequential(network, index):
    """The same network out of torch's own layers."""
    layers = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        linear = nn.Linear(weight.shape[2], weight.shape[1])
        linear.weight.data, linear.bias.data = weight[index], bias[index]
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def rows(n=7):
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(1))


def test_each_network_is_the_one_of_torchs_layers():
    network = stack()
    for index, logits in enumerate(network(rows())):
        torch.testing.assert_close(logits, as_sequential(network, index)(rows())[:, 0])


def test_selecting_keeps_the_network_and_leaves_the_global_generator_alone():
    network, before = stack(), torch.get_rng_state()
    for index in range(3):
        alone = network.select(index)
        assert torch.equal(alone(rows())[0], network(rows())[index])
        assert all(values.requires_grad for values in alone.parameters())
    assert torch.equal(torch.get_rng_state(), before)


def test_every_network_starts_from_the_same_weights_in_the_range_of_torch():
    network = StackedMLP(2, 100, (50,), torch.Generator().manual_seed(0))
    for values, width in zip(network.parameters(), (100, 50, 100, 50), strict=True):
        assert torch.equal(values[0], values[1])
        assert values.abs().max() <= width**-0.5
        assert values[0].numel() == 1 or values.abs().max() > 0.8 * width**-0.5


def test_no_hidden_layers_is_logistic_regression():
    network = StackedMLP(1, 5, (), torch.Generator().manual_seed(0))
    expected = rows() @ network.weights[0][0, 0] + network.biases[0][0, 0]
    torch.testing.assert_close(network(rows())[0], expected)


def test_weights_of_another_shape_are_refused():
    tensors = stack(1).state_dict()
    with pytest.raises(RuntimeError, match="size mismatch"):
        StackedMLP.from_tensors([5, 4, 4, 1], tensors)


@pytest.mark.parametrize("last", [nn.Linear(5, 1), nn.Sequential(nn.Linear(5, 1), nn.Flatten(0))])
def test_a_module_may_give_a_column_or_a_row_of_logits(last):
    network = NeuralNetwork(last)
    copies = network.stack(2, 5, 5, torch.Generator())
    assert copies(rows()).shape == (2, 7)
    assert torch.equal(copies.select(1)(rows())[0], copies(rows())[1])
    assert not {id(p) for p in copies.parameters()} & {id(p) for p in last.parameters()}


@pytest.mark.parametrize("hidden_sizes", [(4,), nn.Linear(5, 3)])
def test_several_outputs(hidden_sizes):
    network = NeuralNetwork(hidden_sizes).stack(2, 5, 5, torch.Generator(), n_outputs=3)
    assert network(rows()).shape == (2, 7, 3)
    assert torch.equal(network.select(1)(rows())[0], network(rows())[1])


def test_a_module_with_another_number_of_outputs_is_refused():
    network = NeuralNetwork(nn.Linear(5, 2)).stack(1, 5, 5, torch.Generator(), n_outputs=3)
    with pytest.raises(InputError, match="must map a row to 3 numbers"):
        network(rows())
