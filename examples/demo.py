"""The main job, on the bundled German credit table: train, audit, report (`make demo`)."""

from pathlib import Path

from fairmatch import compare_models
from fairmatch.cli.train import print_curve, save_trained, train_model
from fairmatch.datasets.labelled import read_labelled
from fairmatch.report import sentences, write_report

FOLDER = Path("demo")
GAP = "demographic_parity_gap"


def main() -> None:
    german = read_labelled("german", None, None)
    print("German credit: training 19 models on 640 rows, choosing on 160 others …")
    trained = train_model(german, max_gap=0.05, epochs=100, random_state=0, verbose=1)
    print_curve(trained)
    save_trained(trained, FOLDER, gap=GAP, picture=True)

    # The first model of the path has weight 0: trained for accuracy alone, on the same rows.
    people = german.frame.iloc[trained.test_index]
    found = compare_models(
        {"unconstrained": trained.path.models[0], "fair": trained.model},
        sensitive_features=people[german.sensitive],
        X=people.drop(columns=german.target),
        y_true=people[german.target],
        privileged="male",
    )
    report = write_report(
        found, FOLDER / "report.html", curve=trained.curve, title="German credit: who like whom?"
    )
    print("\nWhat the audit says of the model kept, on 200 people that no model has seen:")
    for sentence in sentences(found.audits[1]):
        print(f"- {sentence}")
    print(f"\nModel: {FOLDER}\nReport: {report}")


if __name__ == "__main__":
    main()
