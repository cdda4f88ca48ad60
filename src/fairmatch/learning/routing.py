"""Groups that scikit-learn's cross-validation would lose on the way from fit to predict."""

import sys

from sklearn import get_config

from fairmatch.exceptions import InputError

_VALIDATION = ("sklearn.model_selection._validation", "_fit_and_score")


def refuse_lost_groups(who: str) -> None:
    """Raise where cross-validation gives the groups to ``fit`` and not to ``predict``.

    Without metadata routing scikit-learn passes ``params`` to ``fit`` alone. Scoring would then
    fail for want of the groups, and scikit-learn would turn that into scores of NaN.

    Parameters
    ----------
    who : str
        Name of the estimator's class.
    """
    if get_config()["enable_metadata_routing"]:
        return
    frame = sys._getframe(1)
    # Whoever wraps an estimator in code of their own hands the groups on by themselves.
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        if (frame.f_globals["__name__"], frame.f_code.co_name) == _VALIDATION:
            raise InputError(
                f"This cross-validation gives sensitive_features to {who}.fit and not to predict, "
                "so no score could be computed. Let the groups travel in X "
                "(sensitive_column=), or turn routing on "
                "(sklearn.set_config(enable_metadata_routing=True)), or fit a model that needs no "
                "groups to predict (sensitive_at_prediction=False)."
            )
        frame = frame.f_back


def _is_inside(module: str) -> bool:
    return module.split(".")[0] in ("fairmatch", "sklearn")
