"""What one call visits: distinct files and functions of ours, and how often arguments are parsed.

python -m benchmarks.trace

`sys.setprofile` counts every call of a function that is defined in fairmatch. Modules are loaded
before, since their first import is no part of a call. The goals are those of the design: a fit with
a bound visits at most 25 files, an audit at most 30, and each argument is parsed once.
"""

import sys
import warnings
from collections import Counter
from pathlib import Path

import fairmatch
from fairmatch.datasets import load_german

SOURCE = str(Path(fairmatch.__file__).parent)
PARSERS = ("read_groups", "read_labels", "read_classes", "read_weights", "read_columns")


def trace(call):
    """Return the number of files, functions and own types that a call visits, and its parsing."""
    files, functions, parsed, types = set(), set(), Counter(), set()

    def profile(frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SOURCE):
            return
        files.add(code.co_filename)
        functions.add((code.co_filename, code.co_qualname))
        if code.co_name in PARSERS:
            parsed[code.co_name] += 1
        if code.co_name == "__init__":
            types.add(code.co_qualname.removesuffix(".__init__"))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(files), len(functions), len(types), dict(parsed)


def main():
    warnings.simplefilter("ignore")
    german = load_german()
    X, y, sex = german.X, german.y, german.sensitive_features
    model = fairmatch.FTMBoostingClassifier(max_gap=0.05, random_state=0)
    scores = german.y * 0.5 + 0.2
    calls = {
        "fit(max_gap=0.05)": (lambda: model.fit(X, y, sensitive_features=sex), 25),
        "predict": (lambda: model.predict(X, sensitive_features=sex), None),
        "audit of scores with X and labels": (
            lambda: fairmatch.audit(scores, sensitive_features=sex, X=X, y_true=y),
            30,
        ),
        "audit of the fitted model": (
            lambda: fairmatch.audit(model, sensitive_features=sex, X=X, y_true=y),
            30,
        ),
    }
    print("| call | files | goal | functions | own types | parsed |\n|---|---|---|---|---|---|")
    fairmatch.audit(scores, sensitive_features=sex)
    for name, (call, goal) in calls.items():
        files, functions, types, parsed = trace(call)
        told = ", ".join(f"{key} {n}" for key, n in sorted(parsed.items()))
        print(f"| {name} | {files} | {goal or ''} | {functions} | {types} | {told} |", flush=True)


if __name__ == "__main__":
    main()
