"""A classifier that learns a fair representation and a network on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from fairmatch.exceptions import InputError, ModelFileError
from fairmatch.learning.arrayfiles import FILE, read_arrays, under, write_arrays
from fairmatch.learning.choice import GapChoice
from fairmatch.learning.classifier import FairClassifier
from fairmatch.learning.columns import Columns
from fairmatch.learning.family import Family
from fairmatch.learning.loss import Loss
from fairmatch.learning.networks.learner import NetworkLearner, NetworkScorer
from fairmatch.learning.networks.settings import NetworkSettings
from fairmatch.learning.networks.weightfiles import network_arrays, network_from
from fairmatch.learning.reader import TableReader, check_lengths
from fairmatch.learning.representations.base import FairTransformer
from fairmatch.learning.representations.repair import TransportRepairTransformer
from fairmatch.learning.rows import TrainingRows, seed_sequence
from fairmatch.learning.saving import State
from fairmatch.learning.settings import estimator
from fairmatch.learning.state import epochs_from
from fairmatch.matching.coupling import Coupling
from fairmatch.tables.arrays import FloatArray

# Encoded rows, and the codes of their groups; None if groups are not used.
Read = tuple[FloatArray, NDArray[Any] | None]


@dataclass(frozen=True, eq=False)
class RepresentationScorer:
    """A network that scores the representation of rows.

    Attributes
    ----------
    representation : FairTransformer
        The fitted representation.
    head : NetworkScorer
        The network on the representation.
    """

    representation: Any
    head: NetworkScorer

    FILE: ClassVar[str] = FILE

    def scores(self, inputs: Read) -> FloatArray:
        """Return the score of every row."""
        return self.head.scores(self.representation.representer_.represent(*inputs))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the estimator shows."""
        return {
            **self.head.attributes(),
            "scorer_": self,
            "representation_": self.representation,
        }

    def state(self) -> State:
        """Return the state to save: the network's weights and the representation's state."""
        network: Any = self.head.network
        arrays = {f"network.{key}": v for key, v in network_arrays(network).items()}
        inner = self.representation.representer_.state()
        arrays |= {f"representation.{k}": v for k, v in read_arrays(inner.content).items()}
        sizes = [network.n_inputs, *network.hidden_sizes, network.n_outputs]
        facts = {
            "network_sizes": sizes,
            "n_epochs": self.head.n_epochs,
            "learned_representation": inner.facts,
        }
        return State(FILE, write_arrays(arrays), facts)

    @classmethod
    def from_state(
        cls, content: bytes, facts: dict[str, Any], reader: TableReader, model: Any
    ) -> "RepresentationScorer":
        """Return the scorer of a saved state; raise an error if it is damaged."""
        arrays = read_arrays(content)
        network = network_from(under("network", arrays), facts["network_sizes"])
        inner = model._seeded()
        inner._check_parameters([getattr(inner, inner._weight_name)], None)
        representer = inner._family.representer(
            inner,
            write_arrays(under("representation", arrays)),
            facts["learned_representation"],
            reader.n_encoded,
        )
        if network.n_inputs != representer.n_outputs:
            raise ModelFileError(
                f"The file is damaged: the network takes {network.n_inputs} inputs, and the "
                f"representation has {representer.n_outputs}."
            )
        inner._adopt({**reader.attributes(), **representer.attributes()})
        return cls(inner, NetworkScorer(network, epochs_from(facts)))


class RepresentationLearner:
    """A learner that trains all representations together, then all networks on them.

    Parameters
    ----------
    representation : FairTransformer
        The representation, with its settings.
    settings : NetworkSettings
        The settings of the networks on it.
    reader : TableReader
        The reader that has read the rows.
    """

    def __init__(
        self, representation: FairTransformer, settings: NetworkSettings, reader: TableReader
    ) -> None:
        self.representation, self.settings, self.reader = representation, settings, reader

    def fit_path(
        self,
        rows: TrainingRows,
        loss: Loss,
        compare: Callable[[TrainingRows], Any],
        weights: Sequence[float],
    ) -> list[RepresentationScorer]:
        """Return one scorer per weight of the representation."""
        rows.groups.only_two(type(self.representation).__name__)
        learner = self.representation._family.learner(self.representation)
        members = learner.fit_path(rows, loss, compare, weights)
        codes = rows.groups.codes if self.reader.at_prediction else None
        inputs = members[0].represent_path(members, rows.encoded, codes)
        # The networks have no penalty: each is trained plainly on its representation.
        heads = NetworkLearner(self.settings).fit_path(
            replace(rows, inputs=inputs), loss, compare, [0.0] * len(members)
        )
        known = self.reader.attributes()
        return [
            RepresentationScorer(
                self.representation._fitted(weight, **known, **member.attributes()), head
            )
            for weight, member, head in zip(weights, members, heads, strict=True)
        ]


@estimator(GapChoice, NetworkSettings)
class RepresentationClassifier(FairClassifier):
    """A fair representation, and a network on it that is trained for accuracy alone.

    scikit-learn's ``Pipeline`` does the same for one weight, and this class for a whole curve:
    `fairness_path` learns the representations of all weights in one pass, and the networks on them
    in another.

    Parameters
    ----------
    representation : transformer, optional
        A `LAFTRTransformer`, `SIPMTransformer` or `TransportRepairTransformer`. Its settings
        include the groups' column, the encoder of the table and the fairness weight. By default it
        is a `TransportRepairTransformer` with full repair. A representation without a seed gets
        one from ``random_state``.

    Attributes
    ----------
    groups_ : tuple
        Labels of the two groups.
    representation_ : transformer
        The fitted representation.
    network_ : NetworkStack
        The network, which sees only the representation.
    fairness_weight_ : float
        The weight that the representation was trained with.

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

    representation: Any = None

    _state_file: ClassVar[str] = FILE
    _family: ClassVar[Family] = Family(
        "numbers", NetworkSettings, lambda settings, reader: None, RepresentationScorer
    )

    @property
    def default_weights(self) -> tuple[float, ...]:
        """Weights of a whole curve, which are those of the representation."""
        weights: tuple[float, ...] = self._chosen.default_weights
        return weights

    @property
    def fairness_weight(self) -> float:
        """Weight of the representation."""
        return float(self._weight)

    @property
    def sensitive_column(self) -> Columns:
        """Column of X that holds the groups."""
        return self._reader().columns

    @property
    def sensitive_at_prediction(self) -> bool:
        """Whether new rows need their groups."""
        return self._reader().at_prediction

    @property
    def _chosen(self) -> FairTransformer:
        """The representation given as a parameter, or the default one."""
        chosen = (
            TransportRepairTransformer() if self.representation is None else self.representation
        )
        if not isinstance(chosen, FairTransformer):
            raise InputError(
                "representation must be one of fairmatch's transformers, such as "
                f"TransportRepairTransformer(); got {chosen!r}. Any other transformer goes into "
                "scikit-learn's Pipeline."
            )
        return chosen

    @property
    def _weight(self) -> Any:
        return getattr(self._chosen, self._chosen._weight_name)

    def _set_weight(self, weight: float) -> None:
        self.representation = clone(self._chosen)
        self.representation._set_weight(weight)

    def _encoder(self) -> Any:
        return self._chosen._encoder()

    def _reader(self) -> TableReader:
        return replace(self._chosen._reader(), who=type(self).__name__)

    def _learner(self) -> RepresentationLearner:
        return RepresentationLearner(self._seeded(), NetworkSettings.of(self), self.reader_)

    def _compare(self, rows: TrainingRows, coupling: Coupling | None) -> Coupling | None:
        return coupling

    def _inputs(self, X: Any, sensitive_features: ArrayLike | None) -> Read:
        features, codes = self._read_new(X, sensitive_features)
        encoded = self.reader_.encode(features)
        check_lengths(encoded, codes)
        return encoded, codes

    def _check_parameters(
        self, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> None:
        self._chosen._check_parameters(fairness_weights, coupling)
        NetworkSettings.of(self)

    def _seeded(self) -> FairTransformer:
        """Return a copy of the representation, with a seed if it has none of its own."""
        representation: FairTransformer = clone(self._chosen)
        parameters = representation.get_params(deep=False)
        if self.random_state is not None and parameters.get("random_state", 0) is None:
            seed = seed_sequence(self.random_state).generate_state(1, np.uint64)[0] >> np.uint64(1)
            representation.set_params(random_state=int(seed))
        return representation
