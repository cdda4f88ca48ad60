"""Any model's scores to an audit: who is treated how, and who like whom."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from fairmatch.auditing.building import build_audit
from fairmatch.auditing.comparing import compare_scores
from fairmatch.auditing.facts import About, Audit, Comparison
from fairmatch.auditing.people import read_people
from fairmatch.auditing.scoring import read_model
from fairmatch.auditing.settings import AuditSettings
from fairmatch.auditing.units import Units
from fairmatch.exceptions import InputError
from fairmatch.learning.curve import FairnessPath


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
    r"""State how a model treats groups of people, and which of them it treats alike.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,), or a fitted estimator
        Scores in [0, 1], or 0/1 decisions, of any model; or a classifier with ``predict_proba``,
        which then scores ``X``. With ``scale="real"``, predictions; or a regressor with
        ``predict``.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row. Of several attributes the combinations that occur are the groups, and
        each attribute is described by itself too. People with a missing value, or one written
        "unknown", are the group "unknown", which is shown and not compared.
    X : table or array of shape (n_rows, n_columns), optional
        What is known of the people, of pandas, polars, pyarrow or NumPy; missing values are
        allowed. Without it there are gaps, intervals and the matching by score quantiles.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes, for error rates, calibration and the joint map. With
        ``scale="real"``, the numbers that are predicted, whose standard deviation relative gaps
        are taken in.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row. Rows of weight 0 are left out of everything.
    weight_kind : {"survey", "counts"}, default="survey"
        What the weights are. A weight of a survey says how much a person counts; the intervals
        then speak of as many people as Kish's effective size says. A count says how many people
        a row of an aggregated table stands for.
    ids : array-like of shape (n_rows,), optional
        Who the rows are; row numbers by default.
    keep : collection of str, default=()
        Columns of X that stay although they identify people or give their group away; without it
        such a column is an error.
    scale : {"probability", "real"}, default="probability"
        What scores are. With "real" they are predictions in units of the target. Nobody is
        selected by them: there are gaps of means, of distributions and of matched people, in
        units and relative to a standard deviation, and no rates, ratios or decisions.
    threshold : float in [0, 1], default=0.5
        Selected are scores at or above it; with ``favourable="low"``, scores below it.
    favourable : {"high", "low"}, default="high"
        Which scores are good for a person. Rates, ratios and gaps are of the favourable outcome.
        With "low" the favourable label is the one that is not ``pos_label``, and the true
        positive rate is the share of people with it who are selected.
    outcome : str, optional
        What the selected are called, such as "hired" or "granted bail"; by default "selected", or
        "not flagged" with ``favourable="low"``.
    pos_label : default=1
        The label that a high score predicts.
    confidence : float, default=0.95
        Level of the intervals.
    n_resamples : int, default=1000
        Bootstrap resamples, and permutations.
    n_sample : int, default=4096
        People drawn of each group for the matchings; everybody of a smaller group. With more
        than three groups fewer are drawn, so that the time does not grow with the pairs.
    n_subsets : int, default=1000
        Random half-spaces to look at.
    min_group_size : int, default=30
        Nothing is stated of fewer people; the audit says so by name.
    random_state : int, default=0
        Seed: same seed, same audit.
    model_name : str, default="model"
        What to call the model.
    title, author, date, purpose : str, optional
        What a reader of the report wants to know first. They are kept as they are given.
    progress : callable, optional
        Called with the name of each step before it starts.

    Returns
    -------
    Audit

    Notes
    -----
    The model's own matching :math:`T^f` (`fairmatch.fair_matching`) is compared with the nearest
    matching and with a random one, on the same sample:

    .. math:: \frac{C(T^f) - C_{\min}}{C_{\mathrm{random}} - C_{\min}},
              \qquad C(T) = E \|X - T(X)\|^2,

    which is 0 for a matching as near as possible, 1 for one as good as random. Numbers are scaled
    to [0, 1] and two different categories are at squared distance 2, as in
    `fairmatch.tables.encoder.TableEncoder`. A gap is a fact about these people; whether it is
    acceptable is not for a library to say.

    Predictions are brought to [0, 1] by their range, audited, and brought back, which changes no
    gap. Their intervals take the range that is seen for the range that is possible, and the
    standard deviation of relative gaps as known.

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
    """Raise where something was given that predictions of a number have no use for."""
    for name, given in {"pos_label": pos_label, "privileged": privileged}.items():
        if settings.is_real and given not in (1, None):
            raise InputError(
                f"{name}={given!r} was given with scale='real', and predictions in units of the "
                f"target have neither classes nor decisions. Leave {name} out."
            )


def compare_models(
    y_scores: Mapping[str, Any] | FairnessPath,
    *,
    sensitive_features: ArrayLike,
    privileged: Hashable | None = None,
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
        first is the reference, usually the model without a fairness constraint.
    sensitive_features : array-like of shape (n_rows,), or a table of several attributes
        Group of every row.
    privileged : a group label, optional
        The favoured group, which tells undesirable flips from others.
    X : table or array of shape (n_rows, n_columns), optional
        What is known of the people.
    y_true : array-like of shape (n_rows,), optional
        Labels of two classes; with ``scale="real"``, the numbers that are predicted.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of every row.
    ids : array-like of shape (n_rows,), optional
        Who the rows are; row numbers by default.
    keep : collection of str, default=()
        Columns of X that stay although they identify people or give their group away.
    pos_label : default=1
        The label that a high score predicts.
    title, author, date, purpose : str, optional
        What a reader of the report wants to know first.
    progress : callable, optional
        Called with the name of each step before it starts.
    **settings
        What governs the statements, by the names that `audit` gives them: threshold, confidence,
        n_resamples, n_sample, n_subsets, min_group_size, random_state, favourable, outcome,
        weight_kind, scale.

    Returns
    -------
    Comparison

    Notes
    -----
    All models are looked at on the same sample, so that their transport costs can be compared.
    Rank agreement and undesirable flips are those of Appendix E.3 of the paper.

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
        raise InputError(f"A comparison needs at least two models, got {len(y_scores)}.")
    governed = AuditSettings(**settings)
    _check_labels(governed, pos_label, privileged)
    about = About(title, author, date, purpose)
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
    if privileged is not None:
        table.groups.code_of(privileged, "privileged")
    scores = {name: read_model(model, table, governed.scale) for name, model in y_scores.items()}
    table = table.ordered(list(scores.values()))
    # One range for all models, so that what is near to a gap is the same for each of them.
    units = Units.of(list(scores.values())) if governed.is_real else None
    audits = tuple(
        build_audit(table, own, governed, name, about, progress, units)
        for name, own in scores.items()
    )
    if units is not None:  # ranks are the same
        scores = {name: units.shares(own) for name, own in scores.items()}
    (reference, first), *others = scores.items()
    return Comparison(
        audits=audits,
        pairs=tuple(
            compare_scores(name, own, reference, first, table, privileged, governed)
            for name, own in others
        ),
        privileged=None if privileged is None else str(privileged),
    )
