"""The fairness curve on Adult against one run of the loop that the paper prints.

The paper's loop is written out here as its Algorithm 1 has it: in every step a distance matrix, a
linear program, an argmax, and one model. Both sides take the same number of steps with 1,024
people of each group. A few epochs are timed and scaled to 200; what is done once is counted whole.
"""

import resource
import time

import numpy as np
import torch

from benchmarks.timing import Row, in_subprocess

EPOCHS, BATCH = 200, 1024
SHORT = 40


def _split():
    from fairmatch.datasets import load_adult, paper_split

    return paper_split(load_adult(), seed=0)


def paper_literal(n_steps):
    """Seconds per step of the paper's loop: one model, one weight."""
    import ot

    split = _split()
    group = split.group_train
    inputs = torch.tensor(np.column_stack([split.X_train, group]), dtype=torch.float32)
    labels = torch.tensor(split.y_train, dtype=torch.float32)
    rows = [torch.from_numpy(np.flatnonzero(group == s)) for s in (0, 1)]
    d = split.X_train.shape[1]
    layers = [torch.nn.Linear(d + 1, d), torch.nn.ReLU(), torch.nn.Linear(d, d), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(d, 1), torch.nn.Sigmoid())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for _ in range(n_steps):
        batch = torch.randperm(len(inputs))[:BATCH]
        xs, xt = (inputs[r[torch.randperm(len(r))[:BATCH]]] for r in rows)
        weight = torch.ones(BATCH) / BATCH
        plan = ot.emd(weight, weight, ot.dist(xs[:, :-1], xt[:, :-1]))
        matched = xt[torch.argmax(plan, dim=1)]
        loss = torch.nn.functional.binary_cross_entropy(model(inputs[batch])[:, 0], labels[batch])
        loss = loss + 1.0 * (model(xs) - model(matched)).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (time.perf_counter() - start) / n_steps


def curve(transport, epochs):
    """Seconds done once, per epoch of training 18 models, and peak memory in GB."""
    from fairmatch import FTMClassifier, NeuralNetwork, OptimalTransportMatcher

    split = _split()
    coupling, matching = None, 0.0
    if transport == "all rows":
        start = time.perf_counter()
        coupling = OptimalTransportMatcher(tolerance=1e-3).match(split.X_train, split.group_train)
        matching = time.perf_counter() - start
        estimator = FTMClassifier(
            NeuralNetwork(epochs=epochs, batch_size=BATCH), encoder=None, random_state=0
        )
    else:
        # One core trains, the other matches ahead.
        torch.set_num_threads(1)
        matcher = OptimalTransportMatcher(batch_size=BATCH)
        estimator = FTMClassifier(
            NeuralNetwork(epochs=epochs), transport=matcher, encoder=None, random_state=0
        )
    # The first run also starts the process that matches ahead: that is done once, not per epoch.
    seconds = [_path_seconds(split, estimator, coupling) for _ in range(2)]
    once = matching + max(0.0, seconds[0] - seconds[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"once": once, "matching": matching, "epoch": seconds[1] / epochs, "peak": peak}


def _path_seconds(split, estimator, coupling):
    from fairmatch import fairness_path

    start = time.perf_counter()
    fairness_path(
        split.X_train,
        split.y_train,
        sensitive_features=split.group_train,
        estimator=estimator,
        coupling=coupling,
    )
    return time.perf_counter() - start


def representations(epochs):
    """Seconds of each rival's whole curve, heads included: what is done once, and per epoch."""
    from paper.rivals import (
        LAFTRTransformer,
        RepresentationClassifier,
        SIPMTransformer,
        TransportRepairTransformer,
    )

    from fairmatch import NeuralNetwork, OptimalTransportMatcher

    split, seconds = _split(), {}
    coupling = OptimalTransportMatcher(batch_size=BATCH, tolerance=1e-3).match(
        split.X_train, split.group_train
    )
    for family in (LAFTRTransformer, SIPMTransformer, TransportRepairTransformer):
        learns = family is not TransportRepairTransformer
        taken = []
        for length in (1, 1 + epochs):
            network = NeuralNetwork(epochs=length, batch_size=BATCH)
            own = {"estimator": network} if learns else {}
            estimator = RepresentationClassifier(
                family(encoder=None, **own), estimator=network, random_state=0
            )
            # Quickly made: the time of the matching itself is that of the curve of FTM.
            taken.append(_path_seconds(split, estimator, None if learns else coupling))
        epoch = (taken[1] - taken[0]) / epochs
        seconds[family.__name__] = {"once": max(taken[0] - epoch, 0.0), "epoch": epoch}
    return seconds


def single(epochs):
    """Seconds of one FTM model with a ready coupling, and of the unconstrained one."""
    from paper.rivals import UnconstrainedClassifier

    from fairmatch import FTMClassifier, NeuralNetwork, OptimalTransportMatcher

    split = _split()
    coupling = OptimalTransportMatcher(tolerance=1e-2).match(split.X_train, split.group_train)
    given = {"sensitive_features": split.group_train}
    settings = {"encoder": None, "random_state": 0}
    seconds = {"ftm": [], "plain": []}
    n_steps = -(-len(split.y_train) // BATCH)
    for _ in range(3):
        start = time.perf_counter()
        FTMClassifier(NeuralNetwork(epochs=epochs, batch_size=BATCH), **settings).fit(
            split.X_train, split.y_train, coupling=coupling, **given
        )
        seconds["ftm"].append((time.perf_counter() - start) / n_steps)
        # The same batches: as many rows in a step as FTM has, two groups of 1,024.
        start = time.perf_counter()
        UnconstrainedClassifier(NeuralNetwork(epochs=epochs, batch_size=2 * BATCH), **settings).fit(
            split.X_train, split.y_train, **given
        )
        plain_steps = -(-len(split.y_train) // (2 * BATCH))
        seconds["plain"].append((time.perf_counter() - start) / plain_steps)
    return {name: min(values) for name, values in seconds.items()}


def rows():
    steps_per_epoch = -(-len(_split().y_train) // BATCH)
    literal = in_subprocess(paper_literal, 40, threads=2) * steps_per_epoch * EPOCHS
    batches = in_subprocess(curve, "mini-batches", 3, threads=2)
    everything = in_subprocess(curve, "all rows", 2, threads=2)
    one = in_subprocess(single, 4, threads=2)
    rivals = in_subprocess(representations, 2, threads=2)
    # The schedule of the full comparison; its few epochs give the matching its greatest share.
    ours = everything["once"] + everything["epoch"] * SHORT
    return [
        *(
            Row(
                f"curve of {name}, heads included / 18-weight curve with all rows matched once",
                (
                    seconds["once"]
                    + seconds["epoch"] * SHORT
                    + everything["matching"] * name.startswith("Transport")
                )
                / ours,
                3.0,
            )
            for name, seconds in rivals.items()
        ),
        Row(
            "18-weight curve, fresh mini-batch matching in every step / one paper-literal run",
            (batches["once"] + batches["epoch"] * EPOCHS) / literal,
            1.0,
        ),
        Row(
            "18-weight curve, all rows matched once (included) / one paper-literal run",
            (everything["once"] + everything["epoch"] * EPOCHS) / literal,
            0.5,
        ),
        Row("the matching alone / one paper-literal run", everything["matching"] / literal),
        Row(
            "one FTM model with a ready coupling / UnconstrainedClassifier, same rows per step",
            one["ftm"] / one["plain"],
            1.3,
        ),
        Row("peak memory of the curve, GB", everything["peak"], 3.0),
    ]
