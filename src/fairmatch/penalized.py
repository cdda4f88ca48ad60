"""What every classifier of the gradient loop has in common."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from fairmatch.batches import Batches, PairBatches, RowBatches
from fairmatch.columns import split_column
from fairmatch.coupling import Coupling
from fairmatch.encoding import TableEncoder
from fairmatch.exceptions import (
    CouplingError,
    GroupError,
    InputError,
    LabelError,
    TrainingInterruptedWarning,
)
from fairmatch.inputs import (
    FloatArray,
    Groups,
    read_column,
    read_features,
    read_groups,
    read_labels,
    read_weights,
)
from fairmatch.networks import ModuleStack, NetworkStack, StackedMLP
from fairmatch.penalties import Penalty
from fairmatch.progress import TrainingProgress
from fairmatch.training import Objective, Schedule, train

Network = Sequence[int] | torch.nn.Module | None


@dataclass(frozen=True)
class TrainingTable:
    """A table made ready for training.

    Attributes
    ----------
    features : array of shape (n_rows, n_features)
        Encoded features, which people are matched on.
    inputs : array of shape (n_rows, n_inputs)
        What the network sees: the features, and the group where it may be used.
    labels : array of shape (n_rows,)
        0 or 1.
    groups : Groups
        The two groups.
    mass : array of shape (n_rows,)
        Weight of every row.
    weighted : bool
        Whether the caller gave weights.
    """

    features: FloatArray
    inputs: FloatArray
    labels: FloatArray
    groups: Groups
    mass: FloatArray
    weighted: bool

    @property
    def shares(self) -> FloatArray:
        """Share of each group in the mass."""
        sums = np.array([self.mass[self.groups.is_group(code)].sum() for code in (0, 1)])
        shares: FloatArray = sums / sums.sum()
        return shares


class PenalizedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that descends a loss plus a weighted penalty.

    Subclasses say which penalty (`_penalty`), and which rows it compares (`_batches`).
    """

    # Requested by default, so that meta-estimators pass the groups on where routing is enabled.
    __metadata_request__fit: ClassVar = {"sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}
    __metadata_request__score: ClassVar = {"sensitive_features": True}

    def __init__(
        self,
        fairness_weight: float = 1.0,
        *,
        network: Network = None,
        epochs: int = 200,
        batch_size: int = 1024,
        learning_rate: float = 1e-3,
        decay: float = 0.95,
        sensitive_column: str | int | None = None,
        sensitive_at_prediction: bool = True,
        encoder: Any = "table",
        device: str = "cpu",
        random_state: int | None = None,
        verbose: int = 0,
        keep_on_interrupt: bool = False,
    ) -> None:
        self.fairness_weight = fairness_weight
        self.network = network
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.sensitive_column = sensitive_column
        self.sensitive_at_prediction = sensitive_at_prediction
        self.encoder = encoder
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.keep_on_interrupt = keep_on_interrupt

    # -- learning -------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sensitive_features: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        coupling: Coupling | None = None,
    ) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Features, of pandas, polars, pyarrow or NumPy.
        y : array-like of shape (n_rows,)
            Labels of two classes; the greater one is the positive.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless ``sensitive_column`` says where it is in X.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of every row.
        coupling : Coupling, optional
            A ready matching of these rows, for methods that match.

        Returns
        -------
        self
        """
        table = self._read_training(X, y, sensitive_features, sample_weight)
        (self.network_,) = self._train(table, [self.fairness_weight], coupling)
        return self

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
        """Fit one estimator per weight, all at once."""
        template = clone(self)
        table = template._read_training(X, y, sensitive_features, sample_weight)
        networks = template._train(table, fairness_weights, coupling)
        models = []
        for weight, network in zip(fairness_weights, networks, strict=True):
            model = clone(self).set_params(fairness_weight=float(weight))
            model._adopt(template.__dict__, network_=network)
            models.append(model)
        return models

    def _adopt(self, learned: dict[str, Any], **more: Any) -> None:
        """Take over what another estimator has learned."""
        learned = {name: value for name, value in learned.items() if name.endswith("_")}
        self.__dict__.update(learned, **more)

    def _read_training(
        self,
        X: Any,
        y: ArrayLike,
        sensitive_features: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> TrainingTable:
        self._check_parameters()
        features, sensitive = self._features_and_groups(X, sensitive_features)
        self._remember_columns(X)
        self.encoder_: Any = TableEncoder() if self.encoder == "table" else clone(self.encoder)
        encoded = self._encode(features, fit=True)
        labels = read_column(y, "y")
        if len(labels) != len(encoded):
            raise InputError(
                f"X has {len(encoded)} rows, y has {len(labels)}: the numbers of samples differ."
            )
        self.classes_ = np.unique(labels)
        if len(self.classes_) != 2:
            raise LabelError(
                f"y must hold two classes, got {len(self.classes_)} class(es): "
                f"{', '.join(map(str, self.classes_[:5]))}."
            )
        positive = read_labels(y, n_rows=len(encoded), pos_label=self.classes_[1], name="y")
        groups = read_groups(sensitive, n_rows=len(encoded))
        self.groups_ = groups.labels
        weights = read_weights(sample_weight, n_rows=len(encoded))
        inputs = encoded
        if self.sensitive_at_prediction:
            inputs = np.column_stack([encoded, groups.codes])
        return TrainingTable(
            encoded,
            inputs,
            positive.astype(np.float64),
            groups,
            np.ones(len(encoded)) if weights is None else weights,
            weights is not None,
        )

    def _train(
        self, table: TrainingTable, fairness_weights: Sequence[float], coupling: Coupling | None
    ) -> list[NetworkStack]:
        weights = np.asarray(fairness_weights, dtype=np.float64)
        if not (np.isfinite(weights).all() and (weights >= 0.0).all()):
            raise InputError("fairness weights must be finite and not negative.")
        network_seed, batch_seed, penalty_seed = _seeds(self.random_state).spawn(3)
        stack = self._stack(table, len(weights), _torch_generator(network_seed))
        generator = np.random.default_rng(batch_seed)
        penalty, batches = None, None
        if weights.any():
            batches = self._batches(table, coupling, generator)
            penalty = self._penalty(
                torch.as_tensor(weights, dtype=torch.float32),
                torch.as_tensor(table.shares, dtype=torch.float32),
                _torch_generator(penalty_seed),
            )
        if batches is None:
            # Nothing to compare: plain training, and no matching to wait for.
            batches = RowBatches(table.mass, self.batch_size, generator)
        schedule = Schedule.for_table(
            len(table.labels),
            self.batch_size,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            decay=self.decay,
        )
        objective = Objective(stack, table.inputs, table.labels, penalty, self.device)
        # Modules of the user's own may draw from torch's global generator, which is theirs.
        with (
            torch.random.fork_rng(),
            TrainingProgress(self.epochs, weights, shown=self.verbose > 0) as progress,
        ):
            torch.manual_seed(int(network_seed.generate_state(1)[0]))
            stack.train()
            self.n_epochs_ = train(
                objective,
                batches,
                schedule,
                on_epoch=progress.update,
                keep_on_interrupt=self.keep_on_interrupt,
            )
        if self.n_epochs_ < self.epochs:
            warnings.warn(
                f"Training was interrupted after {self.n_epochs_} of {self.epochs} epochs; the "
                "model is what had been learned by then.",
                TrainingInterruptedWarning,
                stacklevel=3,
            )
        stack.eval().to("cpu")
        return [stack.select(index) for index in range(len(weights))]

    def _stack(
        self, table: TrainingTable, n_networks: int, generator: torch.Generator
    ) -> NetworkStack:
        if isinstance(self.network, torch.nn.Module):
            return ModuleStack.copies(self.network, n_networks)
        width = max(1, table.features.shape[1])
        hidden_sizes = (width, width) if self.network is None else tuple(self.network)
        return StackedMLP(n_networks, table.inputs.shape[1], hidden_sizes, generator)

    def _batches(
        self, table: TrainingTable, coupling: Coupling | None, generator: np.random.Generator
    ) -> Batches:
        """Say which rows the penalty compares; by default unrelated rows of the two groups."""
        if coupling is not None:
            raise CouplingError(f"{type(self).__name__} does not match people: leave coupling out.")
        return PairBatches(table.groups, table.mass, self.batch_size, generator)

    def _penalty(
        self, fairness_weights: torch.Tensor, shares: torch.Tensor, generator: torch.Generator
    ) -> Penalty:
        raise NotImplementedError

    # -- predicting -----------------------------------------------------------------------------

    def predict_proba(
        self, X: Any, *, sensitive_features: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Give the probability of each class.

        Parameters
        ----------
        X : table or array of shape (n_rows, n_columns)
            Rows with the columns seen in fit.
        sensitive_features : array-like of shape (n_rows,), optional
            Group of every row, unless it travels in X or is not needed.

        Returns
        -------
        array of shape (n_rows, 2)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self)
        if self.sensitive_at_prediction:
            features, sensitive = self._features_and_groups(X, sensitive_features, "predict")
        else:
            features, sensitive = self._without_groups(X), None
        inputs = self._encode(features, fit=False)
        if sensitive is not None:
            inputs = np.column_stack([inputs, self._group_codes(sensitive, len(inputs))])
        with torch.no_grad():
            logits = self.network_(torch.as_tensor(inputs, dtype=torch.float32))[0]
            positive = torch.sigmoid(logits.to(torch.float64)).numpy()
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, *, sensitive_features: ArrayLike | None = None) -> NDArray[Any]:
        """Give the class whose probability is at least one half.

        Parameters are those of `predict_proba`.
        """
        positive = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        decided: NDArray[Any] = self.classes_[(positive >= 0.5).astype(np.intp)]
        return decided

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> float:
        """Give the accuracy on a table.

        Parameters are those of `predict`, with labels and weights.
        """
        right = self.predict(X, sensitive_features=sensitive_features) == read_column(y, "y")
        return float(np.average(right, weights=read_weights(sample_weight, n_rows=len(right))))

    def save(self, path: str | Path) -> Path:
        """Write the model to a folder: weights as safetensors, the rest as JSON.

        `fairmatch.load` reads it back.
        """
        from fairmatch.persistence import save_model

        return save_model(self, path)

    # -- reading what callers give ----------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name} must be a whole number of at least 1, got {value!r}.")
        if not 0.0 < self.decay <= 1.0:
            raise InputError(f"decay must lie in (0, 1], got {self.decay}.")
        if not self.learning_rate > 0.0:
            raise InputError(f"learning_rate must be positive, got {self.learning_rate}.")
        if isinstance(self.encoder, str) and self.encoder != "table":
            raise InputError(
                f"encoder must be 'table', None or a transformer, got {self.encoder!r}."
            )

    def _split_sensitive(
        self, X: Any, sensitive_features: ArrayLike | None
    ) -> tuple[Any, ArrayLike | None]:
        """Take the groups from where the caller put them."""
        if self.sensitive_column is None:
            return X, sensitive_features
        if sensitive_features is not None:
            raise InputError(
                f"sensitive_features was given although sensitive_column="
                f"{self.sensitive_column!r} says that the groups are in X. Give one of the two."
            )
        return split_column(X, self.sensitive_column)

    def _features_and_groups(
        self, X: Any, sensitive_features: ArrayLike | None, where: str = "fit"
    ) -> tuple[Any, ArrayLike]:
        """Take the groups from where the caller put them, and insist on them."""
        features, sensitive = self._split_sensitive(X, sensitive_features)
        if sensitive is None:
            raise InputError(self._no_groups(where))
        return features, sensitive

    def _without_groups(self, X: Any) -> Any:
        """Drop the groups' column where it is there; a model that needs no groups may lack it."""
        if self.sensitive_column is None or _width(X) < self.n_features_in_:
            return X
        return split_column(X, self.sensitive_column)[0]

    def _no_groups(self, where: str) -> str:
        return (
            f"{type(self).__name__}.{where} needs the group of every row. Pass "
            "sensitive_features=, or name the column of X that holds it in the constructor's "
            "sensitive_column=."
            + (
                " To predict without it, fit with sensitive_at_prediction=False."
                if where == "predict"
                else ""
            )
        )

    def _group_codes(self, sensitive: ArrayLike, n_rows: int) -> FloatArray:
        column = read_column(sensitive, "sensitive_features")
        if len(column) != n_rows:
            raise InputError(f"sensitive_features has {len(column)} rows, X has {n_rows}.")
        is_target = np.asarray(column == self.groups_[1], dtype=bool)
        strange = ~(is_target | np.asarray(column == self.groups_[0], dtype=bool))
        if strange.any():
            raise GroupError(
                f"sensitive_features holds {column[strange][0]!r}; the model knows the groups "
                f"{self.groups_[0]!r} and {self.groups_[1]!r}."
            )
        return is_target.astype(np.float64)

    def _encode(self, features: Any, *, fit: bool) -> FloatArray:
        if self.encoder_ is None:
            return read_features(features)
        encode = self.encoder_.fit_transform if fit else self.encoder_.transform
        return read_features(encode(features))

    def _remember_columns(self, X: Any) -> None:
        names = _column_names(X)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = _width(X)


def _column_names(X: Any) -> list[str] | None:
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None or not all(isinstance(n, str) for n in names) else list(names)


def _width(X: Any) -> int:
    names = getattr(X, "column_names", getattr(X, "columns", None))
    shape = np.shape(X) if names is None else (0, len(names))
    return int(shape[1]) if len(shape) == 2 else 1


def _seeds(random_state: Any) -> np.random.SeedSequence:
    """Turn what scikit-learn's users give into one seed, without touching a global generator."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63 - 1)))
    return np.random.SeedSequence(int(random_state))


def _torch_generator(seed: np.random.SeedSequence) -> torch.Generator:
    return torch.Generator().manual_seed(int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1)))
