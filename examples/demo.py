"""Who is treated like whom? Three models of Adult at a glance, with a report (`make demo`)."""

import time
from pathlib import Path

from lightgbm import LGBMClassifier
from sklearn.model_selection import train_test_split

from fairmatch import FTMBoostingClassifier, QuantileAlignmentClassifier, compare_models
from fairmatch.datasets import load_adult
from fairmatch.report import TradeoffDisplay, sentences, write_report

FOLDER = Path("demo")
BOUND = 0.06


def main() -> None:
    start = time.perf_counter()

    def say(words: str) -> None:
        print(f"[{time.perf_counter() - start:3.0f} s] {words}", flush=True)

    adult = load_adult()
    # LightGBM knows words as categories.
    words = adult.X.select_dtypes(exclude="number").columns
    table = adult.X.astype(dict.fromkeys(words, "category"))
    X, X_test, y, y_test, sex, sex_test = train_test_split(
        table, adult.y, adult.sensitive_features, test_size=0.2, random_state=0
    )
    say(f"Adult: who earns more than $50,000? {len(X):,} people to learn from, {len(X_test):,} to "
        "look at.")  # fmt: skip

    trees = LGBMClassifier(n_estimators=200, n_jobs=1, random_state=0, verbose=-1)
    models = {
        "plain trees": FTMBoostingClassifier(fairness_weight=0.0, random_state=0),
        "aligned trees": QuantileAlignmentClassifier(trees, max_gap=BOUND, random_state=0),
        "FTM": FTMBoostingClassifier(
            max_gap=BOUND, fairness_weights=(0.6, 0.8, 1.0, 1.2, 1.5), random_state=0
        ),
    }
    for name, model in models.items():
        say(f"training: {name}")
        model.fit(X, y, sensitive_features=sex)

    FOLDER.mkdir(exist_ok=True)
    points = {
        "plain trees": models["plain trees"],
        "FTM, one point per weight": models["FTM"].path_,
    }
    points["aligned trees, one point per strength"] = models["aligned trees"].path_
    picture = TradeoffDisplay.from_estimator(points, X_test, y_test, sensitive_features=sex_test)
    picture.save(FOLDER / "tradeoff.svg")

    say("auditing all three on the people whom none of them has seen")
    found = compare_models(
        models, sensitive_features=sex_test, X=X_test, y_true=y_test, n_sample=1500,
        privileged="male",
    )  # fmt: skip
    report = write_report(found, FOLDER / "report.html", title="Adult: who is treated like whom?")

    print()
    for audit in found.audits:
        accuracy = ((_scores(models[audit.model_name], X_test, sex_test) >= 0.5) == y_test).mean()
        print(f"{audit.model_name}: accuracy {accuracy:.3f}")
        for sentence in sentences(audit)[:2]:
            print(f"  {sentence}")
        print()
    say("done")
    print(f"The trade-off: {FOLDER / 'tradeoff.svg'}\nThe report:    {report}")
    print("Open the report first, and look at “Who is matched with whom”.")


def _scores(model, X, groups):
    return model.predict_proba(X, sensitive_features=groups)[:, 1]


if __name__ == "__main__":
    main()
