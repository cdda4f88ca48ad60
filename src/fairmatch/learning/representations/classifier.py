"""A representation, then a classifier on it."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from fairmatch.exceptions import InputError
from fairmatch.learning.base import seed_sequence
from fairmatch.learning.grouped import check_lengths
from fairmatch.learning.networks.penalized import EncodedRows, Network, PenalizedClassifier
from fairmatch.learning.representations.base import GroupTransformer
from fairmatch.learning.representations.repair import TransportRepairTransformer
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray


class RepresentationClassifier(PenalizedClassifier):
    """A fair representation, then a network for accuracy alone on it.

    What scikit-learn's ``Pipeline`` does for one weight, this does for a whole curve: given to
    `fairness_path`, the representations of all weights are learned in one pass, and the networks
    on them in another.

    Parameters
    ----------
    representation : transformer, optional
        `LAFTRTransformer`, `SIPMTransformer` or `TransportRepairTransformer`, with its settings;
        the groups' column and the encoding of the table are among them. By default full repair.
    network : sequence of int, or torch.nn.Module, optional
        The classifier, which sees the representation alone; by default two hidden layers as wide
        as the encoded features.
    epochs, batch_size, learning_rate, decay
        As in `FTMClassifier`, for the classifier.
    device, verbose, keep_on_interrupt
        As in `FTMClassifier`, for the classifier.
    random_state : int, optional
        Seed of the classifier, and of a representation that has none of its own.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The labels; the second is the positive one.
    groups_ : tuple
        The two groups.
    representation_ : transformer
        The representation, fitted.

    Examples
    --------
    >>> from fairmatch import RepresentationClassifier, TransportRepairTransformer, fairness_path
    >>> from fairmatch.datasets import load_german
    >>> german = load_german()
    >>> groups = german.sensitive_features
    >>> model = RepresentationClassifier(TransportRepairTransformer(), epochs=5, random_state=0)
    >>> path = fairness_path(
    ...     german.X, german.y, sensitive_features=groups, fairness_weights=[0.0, 1.0],
    ...     estimator=model)
    >>> [m.representation.amount for m in path.models]
    [0.0, 1.0]
    """

    def __init__(
        self,
        representation: Any = None,
        *,
        network: Network = None,
        epochs: int = 200,
        batch_size: int = 1024,
        learning_rate: float = 1e-3,
        decay: float = 0.95,
        device: str = "cpu",
        random_state: int | None = None,
        verbose: int = 0,
        keep_on_interrupt: bool = False,
    ) -> None:
        self.representation = representation
        self.network = network
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.keep_on_interrupt = keep_on_interrupt

    def _fit_path(
        self,
        X: Any,
        y: ArrayLike,
        fairness_weights: Sequence[float],
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> list[Self]:
        """Fit one representation and one classifier per weight, each kind all at once."""
        template: Self = clone(self)
        template._check_parameters([0.0])
        rows = template._read_training(X, y, sensitive_features, sample_weight)
        path = template._seeded()._fit_path(
            X,
            y,
            fairness_weights,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            coupling=coupling,
        )
        template.encoder_ = path[0].encoder_
        features = path[0]._features(rows.features)
        codes = rows.groups.codes.astype(np.float64) if self.sensitive_at_prediction else None
        inputs = path[0]._represent_path(path, features, codes)
        # Heads have no weights of their own: plain training, each on its representation.
        heads = template._train(EncodedRows(rows, features, inputs), [0.0] * len(path), None)
        return [
            self._fitted(
                weight, template, network_=head, representation_=one, fairness_weight_=float(weight)
            )
            for weight, one, head in zip(fairness_weights, path, heads, strict=True)
        ]

    @property
    def default_weights(self) -> tuple[float, ...]:
        """Weights of a whole curve: those of the representation."""
        weights: tuple[float, ...] = self._representation.default_weights
        return weights

    # What the representation has as parameters is read from it.

    @property
    def _representation(self) -> GroupTransformer:
        chosen = (
            TransportRepairTransformer() if self.representation is None else self.representation
        )
        if not isinstance(chosen, GroupTransformer):
            raise InputError(
                "representation must be one of fairmatch's transformers, such as "
                f"TransportRepairTransformer(); got {chosen!r}. Any other transformer goes into "
                "scikit-learn's Pipeline."
            )
        return chosen

    @property
    def fairness_weight(self) -> float:  # type: ignore[override]
        """Weight of the representation."""
        weight: float = getattr(self._representation, self._representation._weight_name)
        return weight

    @property
    def sensitive_column(self) -> str | int | None:  # type: ignore[override]
        """Column of X that holds the groups."""
        return self._representation.sensitive_column

    @property
    def sensitive_at_prediction(self) -> bool:  # type: ignore[override]
        """Whether new rows need their groups."""
        return self._representation.sensitive_at_prediction

    @property
    def encoder(self) -> Any:
        """How X becomes numbers."""
        return self._representation.encoder

    @property
    def _may_lack_groups(self) -> bool:  # type: ignore[override]
        return self._representation._may_lack_groups

    def _set_weight(self, weight: float) -> None:
        self.representation = clone(self._representation)
        self.representation._set_weight(weight)

    def _seeded(self) -> GroupTransformer:
        """Give the representation a seed, where it has none of its own."""
        representation: GroupTransformer = clone(self._representation)
        parameters = representation.get_params(deep=False)
        if self.random_state is not None and parameters.get("random_state", 0) is None:
            seed = seed_sequence(self.random_state).generate_state(1, np.uint64)[0] >> np.uint64(1)
            representation.set_params(random_state=int(seed))
        return representation

    def _positive_scores(self, features: Any, codes: FloatArray | None) -> FloatArray:
        encoded = self.representation_._features(features)
        check_lengths(encoded, codes)
        return self._scores_of(self.representation_._represent(encoded, codes))
