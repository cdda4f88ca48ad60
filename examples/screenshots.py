"""Take the screenshots of the page about reports: ``python examples/screenshots.py [FOLDER]``.

Needs Chromium and playwright. It audits five tables on held-out rows: German and Adult (both are
bundled), ACSIncome by race (skipped unless ``FAIRMATCH_DATA`` holds it), predicted hours of work,
and three levels of education.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor
from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from sklearn.model_selection import train_test_split

from fairmatch import audit
from fairmatch.auditing.facts import Audit
from fairmatch.datasets import load_acsincome, load_adult, load_german
from fairmatch.report import write_filing, write_report

FOLDER = Path(__file__).parents[1] / "docs" / "_static"


def audited(
    X: pd.DataFrame, people: pd.Series | pd.DataFrame, y: pd.Series, outcome: str, rows: int = 9000
) -> Audit:
    """Train trees on one half of the rows and audit their scores on the other half."""
    drawn = np.random.default_rng(0).permutation(len(X))[:rows]
    X, people, y = (part.iloc[drawn] for part in (X, people, y))
    X, X_test, y, y_test, _, groups = train_test_split(X, y, people, test_size=0.5, random_state=0)
    learner = LGBMRegressor if outcome == "hours" else LGBMClassifier
    model = learner(n_estimators=100, n_jobs=1, verbose=-1).fit(X, y)
    about = {"sensitive_features": groups, "X": X_test, "y_true": y_test, "model_name": "trees"}
    if outcome == "hours":
        return audit(model.predict(X_test), kind="number", **about)
    scores = model.predict_proba(X_test)
    if len(model.classes_) > 2:
        return audit(scores, classes=list(model.classes_), favourable=[outcome], **about)
    return audit(scores[:, 1], outcome=outcome, **about)


def shoot(browser: Browser, page: Path, picture: Path, width: int, height: int, dark: bool) -> None:
    """Photograph the first screen of a page, in a palette of 64 colours."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    opened = context.new_page()
    opened.goto(page.as_uri())
    opened.wait_for_timeout(1500)
    opened.screenshot(path=picture)
    context.close()
    Image.open(picture).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(
        picture, optimize=True
    )


def main(folder: Path) -> None:
    """Write all screenshots."""
    german, adult, crossed = load_german(), load_adult(), load_adult(sensitive=["sex", "race"])
    sex, years = adult.sensitive_features, adult.X["education_num"]
    level = pd.cut(years, [0, 8, 12, 99], labels=["no diploma", "school", "college"]).astype(str)
    rest = adult.X[[name for name in adult.X if not name.startswith("education")]]
    hours, others = rest["hours_per_week"], rest.drop(columns="hours_per_week")
    audits = {
        "german": audited(german.X, german.sensitive_features, german.y, "granted credit"),
        "adult": audited(
            crossed.X, crossed.sensitive_features, crossed.y, "predicted over $50,000"
        ),
        "regression": audited(others, sex, hours, "hours"),
        "classes": audited(rest, sex, level, "college"),
    }
    if os.environ.get("FAIRMATCH_DATA"):
        acs = load_acsincome(sensitive="race")
        audits["acsincome"] = audited(
            acs.X, acs.sensitive_features, acs.y, "predicted over $50,000", rows=40_000
        )
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, found in audits.items():
            page = write_report(found, Path(work) / f"{name}.html")
            shoot(browser, page, folder / f"report-{name}.png", 1280, 900, dark=False)
            if name == "adult":
                shoot(browser, page, folder / "report-phone.png", 400, 900, dark=True)
        filing = write_filing(audits["german"], Path(work) / "filing.html")
        shoot(browser, filing, folder / "report-filing.png", 700, 980, dark=False)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
