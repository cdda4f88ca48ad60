"""An error where scikit-learn's cross-validation passes the groups to fit but not to predict."""

import sys

from sklearn import get_config

from fairmatch.exceptions import InputError

_VALIDATION = ("sklearn.model_selection._validation", "_fit_and_score")


def refuse_lost_groups(who: str) -> None:
    """Raise if cross-validation passes the groups to ``fit`` but not to ``predict``.

    Without metadata routing, scikit-learn passes ``params`` to ``fit`` only. Scoring then fails
    because the groups are missing, and scikit-learn reports scores of NaN.

    Parameters
    ----------
    who : str
        Name of the estimator's class.
    """
    if get_config()["enable_metadata_routing"]:
        return
    frame = sys._getframe(1)
    # Code outside scikit-learn and fairmatch can pass the groups on itself, so the search stops.
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        if (frame.f_globals["__name__"], frame.f_code.co_name) == _VALIDATION:
            raise InputError(
                f"This cross-validation passes sensitive_features to {who}.fit but not to predict, "
                "so no score could be computed. Put the groups into X "
                "(sensitive_column=), or turn routing on "
                "(sklearn.set_config(enable_metadata_routing=True)), or fit a model that needs no "
                "groups to predict (sensitive_at_prediction=False)."
            )
        frame = frame.f_back


def _is_inside(module: str) -> bool:
    return module.split(".")[0] in ("fairmatch", "sklearn")
