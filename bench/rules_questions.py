"""Ten questions with the rule files they should bring, for `bench/rules.py`.

They were written from the descriptions of the files, before any selection had been run on them.
"""

from typing import NamedTuple


class Question(NamedTuple):
    text: str
    # Names of files without their suffix.
    files: tuple[str, ...]


QUESTIONS = (
    Question(
        "How do I keep the image of our service small, and not run it as root?",
        ("docker",),
    ),
    Question(
        "We move this component from version 4 to runes. What changes in Svelte 5?",
        ("svelte-5-vs-svelte-4-cursorrules-prompt-file",),
    ),
    Question(
        "What do I write as the message of this commit, and which branch does the hotfix go to?",
        ("git-conventional-commit-messages", "gitflow"),
    ),
    Question(
        "Search good learning rates for my forecasting model with Optuna.",
        ("automl-hyperparameter-optimization",),
    ),
    Question(
        "The interrupt of the UART never fires on our microcontroller when DMA is on. Why?",
        ("embedded-stm32-hal",),
    ),
    Question(
        "Our site has to work for readers of Arabic and Hebrew as well. What about margins?",
        ("rtl-right-to-left-i18n-cursorrules-prompt-file",),
    ),
    Question(
        "Write fuzz tests for this ERC-20 token with forge.",
        ("solidity-foundry-cursorrules-prompt-file",),
    ),
    Question(
        "Turn this notebook into a stored procedure on Snowflake, and the rest into dbt models.",
        ("snowflake-snowpark-dbt-cursorrules-prompt-file",),
    ),
    Question(
        "Check the login page for screen readers with Playwright. Then file what you find as a "
        "bug report for QA.",
        (
            "playwright-accessibility-testing-cursorrules-prompt-file",
            "qa-bug-report-cursorrules-prompt-file",
        ),
    ),
    Question(
        "My robot's node gets no messages from the lidar in the simulation. How do I launch it?",
        ("ros-ros2",),
    ),
)
