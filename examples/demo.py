"""Who is treated like whom? Three models of Adult at a glance, with a report (`make demo`)."""

import textwrap
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

    # Map, rounds and weights were picked with these test rows in view. The page of results has
    # splits that nothing was picked on.
    trees = LGBMClassifier(n_estimators=100, n_jobs=1, random_state=0, verbose=-1)
    models = {
        "plain trees": FTMBoostingClassifier(trees, fairness_weight=0.0, random_state=0),
        "aligned trees": QuantileAlignmentClassifier(trees, max_gap=BOUND, random_state=0),
        "FTM": FTMBoostingClassifier(
            trees, max_gap=BOUND, fairness_weight=(0.3, 0.5, 0.7, 1.0, 2.0), random_state=0,
        ),
    }  # fmt: skip
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
            print(textwrap.fill(sentence, 98, initial_indent="  ", subsequent_indent="  "))
        print()
    _show_a_pair(found.audits)
    say("done")
    print(f"The trade-off: {FOLDER / 'tradeoff.svg'}\nThe report:    {report}")
    print("Open the report first, and look at “Who is matched with whom”.")


def _show_a_pair(audits):
    """Print one woman, and the man whom each model treats like her."""
    plain, *fair = [audit.individuals for audit in audits]
    female = [group.label for group in audits[0].groups].index("female")
    # Somebody whom both fair models select and the plain one does not, as far as there is one.
    women = [person for person, group in enumerate(plain.group) if group == female]
    women.sort(key=lambda person: (plain.selected[person], -sum(p.selected[person] for p in fair)))
    ids = plain.ids[women[0]]
    print(f"A woman: {_words(plain, women[0])}")
    for audit in audits:
        people = audit.individuals
        her = people.ids.index(ids)
        pairs = people.pairs["nearest_fair"]
        him = next(
            (there if here == her else here)
            for here, there in zip(pairs.first, pairs.second, strict=True)
            if her in (here, there)
        )
        print(f"  {audit.model_name} (her score {people.scores[her]:.2f}) treats her like a man: "
              f"{_words(people, him)}")  # fmt: skip
    print()


def _words(people, person):
    known = {name: values[person] for name, values in people.columns.items()}
    return (
        f"{known['age']:.0f}, {known['education']}, {known['occupation']}, "
        f"{known['hours_per_week']:.0f} hours a week"
    )


def _scores(model, X, groups):
    return model.predict_proba(X, sensitive_features=groups)[:, 1]


if __name__ == "__main__":
    main()
