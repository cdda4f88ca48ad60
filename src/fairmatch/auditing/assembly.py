"""Audits of any model's scores: how groups are treated, and which people are treated alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from fairmatch.auditing.building import build_audit
from fairmatch.auditing.comparing import compare_scores
from fairmatch.auditing.facts import About, Audit, Comparison
from fairmatch.auditing.people import read_people
from fairmatch.auditing.scoring import check_scores, read_model
from fairmatch.auditing.settings import AuditSettings
from fairmatch.auditing.units import Units
from fairmatch.exceptions import InputError
from fairmatch.learning.curve import FairnessPath
from fairmatch.measures.changes import favoured_groups


def audit(
    y_score: Any,
    *,
    sensitive_features: ArrayLike,
    X: Any = None,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weight_kind: str = "survey",
    ids: ArrayLike | None = None,
    keep: Collection[str] = (),
    scale: str = "probability",
    threshold: float = 0.5,
    favourable: str = "high",
    outcome: str | None = None,
    pos_label: Any = 1,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    n_sample: int = 4096,
    n_subsets: int = 1000,
    min_group_size: int = 30,
    random_state: int = 0,
    model_name: str = "model",
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    purpose: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> Audit:
    r"""Return the facts about how a model treats groups, and which people it treats alike.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,), or a fitted estimator
        Scores in [0, 1] or 0/1 decisions of any model, or a classifier with ``predict_proba``,
        which then scores ``X``. With ``scale="real"`` these are predictions, or a regressor with
        ``predict``.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. With several attributes, the groups are the combinations that occur,
        and each attribute is described by itself too. People whose value is missing, or reads
        "unknown", form the group "unknown", which is shown but not compared.
    X : table or array of shape (n_rows, n_columns), optional
        What is known of the people: a table of pandas, polars or pyarrow, or a NumPy array.
        Missing values are allowed. Without X there are gaps, intervals and the matching by score
        quantiles.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes, for error rates, calibration and the joint map. With
        ``scale="real"`` these are the numbers to predict. Relative gaps are in units of their
        standard deviation.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. Rows of weight 0 are left out of everything.
    weight_kind : {"survey", "counts"}, default="survey"
        What the weights are. A survey weight is how much a person counts; the intervals are then
        based on Kish's effective number of people. A count is how many people a row of an
        aggregated table stands for.
    ids : array-like of shape (n_rows,), optional
        Identifier of every row. By default it is the row number.
    keep : collection of str, default=()
        Columns of X to keep although they identify people or give their group away. A column of
        that kind that is not listed here is an error.
    scale : {"probability", "real"}, default="probability"
        What the scores are. With "real" they are predictions in units of the target, which select
        nobody. The audit then has gaps of means, of distributions and of matched people, both in
        units and relative to a standard deviation. It has no rates, ratios or decisions.
    threshold : float in [0, 1], default=0.5
        A person with a score at or above the threshold is selected. With ``favourable="low"`` a
        person with a score below it is selected.
    favourable : {"high", "low"}, default="high"
        Which scores are good for a person. Rates, ratios and gaps are of the favourable outcome.
        With "low" the favourable label is the one that is not ``pos_label``, and the true
        positive rate is the share of people with that label who are selected.
    outcome : str, optional
        What the selected are called, such as "hired" or "granted bail". The default is "selected",
        or "not flagged" with ``favourable="low"``.
    pos_label : default=1
        The label that a high score predicts.
    confidence : float, default=0.95
        Level of the intervals.
    n_resamples : int, default=1000
        Number of bootstrap resamples, and of permutations.
    n_sample : int, default=4096
        How many people of each group are drawn for the matchings. A smaller group is used whole.
        With more than three groups fewer people are drawn, which keeps the time from growing with
        the number of pairs.
    n_subsets : int, default=1000
        Number of random half-spaces to examine.
    min_group_size : int, default=30
        The audit states nothing about a group of fewer people, and says which group it is.
    random_state : int, default=0
        Seed. The same seed gives the same audit.
    model_name : str, default="model"
        What to call the model.
    title, author, date, purpose : str, optional
        What a reader of the report wants to know first. They are kept as they are given.
    progress : callable, optional
        Called with the name of each step before it starts.

    Returns
    -------
    Audit
        The facts about the model.

    Notes
    -----
    The model's own matching :math:`T^f` (`fairmatch.fair_matching`) is compared with the nearest
    matching and with a random one, on the same sample:

    .. math:: \frac{C(T^f) - C_{\min}}{C_{\mathrm{random}} - C_{\min}},
              \qquad C(T) = E \|X - T(X)\|^2,

    which is 0 for a matching as near as possible, and 1 for one that is no better than random.
    Numbers are scaled to [0, 1], and two different categories are at squared distance 2, as in
    `fairmatch.tables.encoder.TableEncoder`. A gap is a fact about these people. A library cannot
    decide whether it is acceptable.

    Predictions are scaled to [0, 1] by their range, audited, and scaled back. This changes no gap.
    The intervals assume that no prediction lies outside the observed range, and that the standard
    deviation of relative gaps is known.

    Examples
    --------
    >>> from fairmatch import audit
    >>> found = audit([0.9, 0.2, 0.6, 0.7] * 20, sensitive_features=["a", "a", "b", "b"] * 20)
    >>> gap = found.gap("demographic_parity_gap")
    >>> print(f"{gap.value} [{gap.low:.2f}, {gap.high:.2f}]")
    0.5 [0.33, 0.65]

    Predictions of hours:

    >>> hours = audit([30.0, 40.0, 42.0, 48.0] * 20, sensitive_features=["f", "f", "m", "m"] * 20,
    ...               scale="real")
    >>> print(f"{hours.gap('mean_parity_gap').value:.2f} hours, threshold {hours.threshold}")
    10.00 hours, threshold None
    """
    settings = AuditSettings(
        threshold=threshold,
        confidence=confidence,
        n_resamples=n_resamples,
        n_sample=n_sample,
        n_subsets=n_subsets,
        min_group_size=min_group_size,
        random_state=random_state,
        favourable=favourable,
        outcome=outcome,
        weight_kind=weight_kind,
        scale=scale,
    )
    _check_labels(settings, pos_label)
    check_scores(y_score, scale)
    inside = getattr(y_score, "sensitive_column", None)
    table = read_people(
        sensitive_features,
        X,
        y_true,
        ids,
        pos_label,
        inside,
        sample_weight,
        weight_kind,
        keep,
        scale,
    )
    about = About(title, author, date, purpose)
    scores = read_model(y_score, table, scale)
    units = Units.of([scores]) if settings.is_real else None
    table = table.ordered([scores])
    return build_audit(table, scores, settings, model_name, about, progress, units)


def _check_labels(settings: AuditSettings, pos_label: Any, privileged: Any = None) -> None:
    """Raise if a label or a favoured group was given although scores are predictions."""
    labelled = {} if pos_label in (1, None) else {"pos_label": pos_label}
    favouring = {} if privileged is None else {"privileged": privileged}
    for name, given in (labelled | favouring).items():
        if settings.is_real:
            raise InputError(
                f"{name}={given!r} was given with scale='real', and predictions in units of the "
                f"target have neither classes nor decisions. Leave {name} out."
            )


def compare_models(
    y_scores: Mapping[str, Any] | FairnessPath,
    *,
    sensitive_features: ArrayLike,
    privileged: Hashable | Iterable[Hashable] | None = None,
    X: Any = None,
    y_true: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    ids: ArrayLike | None = None,
    keep: Collection[str] = (),
    pos_label: Any = 1,
    title: str | None = None,
    author: str | None = None,
    date: str | None = None,
    purpose: str | None = None,
    progress: Callable[[str], None] | None = None,
    **settings: Any,
) -> Comparison:
    """Audit two or more models on the same people, and compare them with the first.

    Parameters
    ----------
    y_scores : mapping, or FairnessPath
        Name of each model to its scores, or to a fitted estimator; or all models of a path. The
        first model is the reference, usually the one without a fairness constraint.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    privileged : a group label, or a list of them, optional
        The favoured groups. They decide which flips are undesirable.
    X : table or array of shape (n_rows, n_columns), optional
        What is known of the people: a table of pandas, polars or pyarrow, or a NumPy array.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes. With ``scale="real"`` these are the numbers to predict.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. Rows of weight 0 are left out of everything.
    ids : array-like of shape (n_rows,), optional
        Identifier of every row. By default it is the row number.
    keep : collection of str, default=()
        Columns of X to keep although they identify people or give their group away.
    pos_label : default=1
        The label that a high score predicts.
    title, author, date, purpose : str, optional
        What a reader of the report wants to know first. They are kept as they are given.
    progress : callable, optional
        Called with the name of each step before it starts.
    **settings
        Settings of the audits:

        - ``threshold=0.5``: the score from which a person is selected.
        - ``favourable="high"``: which scores are good. With "low", people below the threshold are
          selected.
        - ``outcome=None``: what the selected are called, such as "hired".
        - ``scale="probability"``: "real" if the scores are predictions in units of the target.
        - ``weight_kind="survey"``: "counts" if a weight is a number of people.
        - ``confidence=0.95``: level of the intervals.
        - ``n_resamples=1000``: number of bootstrap resamples, and of permutations.
        - ``n_sample=4096``: how many people of each group are drawn for the matchings.
        - ``n_subsets=1000``: number of random half-spaces to examine.
        - ``min_group_size=30``: nothing is stated about a group of fewer people.
        - ``random_state=0``: seed of all random draws.

    Returns
    -------
    Comparison
        The audit of each model, and how each model differs from the first.

    Notes
    -----
    All models are audited on the same sample, so their transport costs can be compared. Rank
    agreement and undesirable flips are those of Appendix E.3 of the paper.

    Examples
    --------
    >>> from fairmatch import compare_models
    >>> groups = ["a", "a", "b", "b"] * 20
    >>> models = {"unfair": [0.9, 0.2, 0.6, 0.7] * 20, "fair": [0.9, 0.2, 0.1, 0.8] * 20}
    >>> found = compare_models(models, sensitive_features=groups, privileged="b")
    >>> found.pairs[0].undesirable_flips
    {'a': 0, 'b': 0}
    >>> found.pairs[0].decisions["b"]
    (0, 20, 0, 20)
    """
    if isinstance(y_scores, FairnessPath):
        y_scores = y_scores.named()
    if len(y_scores) < 2:
        raise InputError(
            f"A comparison needs at least two models, got {len(y_scores)}. Add a model, or audit a "
            "single one with fairmatch.audit."
        )
    governed = AuditSettings(**settings)
    _check_labels(governed, pos_label, privileged)
    about = About(title, author, date, purpose)
    for own in y_scores.values():
        check_scores(own, governed.scale)
    inside = {getattr(model, "sensitive_column", None) for model in y_scores.values()} - {None}
    table = read_people(
        sensitive_features,
        X,
        y_true,
        ids,
        pos_label,
        inside.pop() if inside else None,
        sample_weight,
        governed.weight_kind,
        keep,
        governed.scale,
    )
    favoured = None if privileged is None else favoured_groups(table.groups, privileged)
    scores = {name: read_model(model, table, governed.scale) for name, model in y_scores.items()}
    table = table.ordered(list(scores.values()))
    # All models share one range, and so one difference at which scores count as alike.
    units = Units.of(list(scores.values())) if governed.is_real else None
    audits = tuple(
        build_audit(table, own, governed, name, about, progress, units)
        for name, own in scores.items()
    )
    if units is not None:  # scaling keeps the ranks
        scores = {name: units.shares(own) for name, own in scores.items()}
    (reference, first), *others = scores.items()
    return Comparison(
        audits=audits,
        pairs=tuple(
            compare_scores(name, own, reference, first, table, favoured, governed)
            for name, own in others
        ),
        privileged=None
        if favoured is None
        else "; ".join(str(table.groups.labels[code]) for code in sorted(favoured)),
    )
