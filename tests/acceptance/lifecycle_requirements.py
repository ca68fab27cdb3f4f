"""What issue 4 asks of changed facts: number, sentence, and what shows it; `requirements.py` lists them."""

from __future__ import annotations

CHANGED_FACTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "2 changed facts",
        "A changed fact or an explicit correction supersedes; the old stays readable, as of its time too.",
        (
            "unit/test_consolidation.py::test_another_value_of_the_same_attribute_takes_the_place_of_the_first",
            "unit/test_consolidation.py::test_what_only_looks_like_a_change_stands_beside_the_first",
            "integration/test_superseding.py::test_a_changed_fact_takes_the_place_of_the_old_one",
            "integration/test_superseding.py::test_what_held_before_is_the_answer_as_of_then",
            "integration/test_superseding.py::test_both_sides_of_a_supersession_are_in_the_history",
            "integration/test_superseding.py::test_a_superseded_memory_can_be_let_hold_again",
        ),
    ),
    (
        "2 near duplicates",
        "What says nearly the same is linked, never merged away.",
        (
            "integration/test_superseding.py::test_a_near_duplicate_is_linked_and_both_stay",
        ),
    ),
    (
        "2 model",
        "A language model vetoes and confirms inside the rules' guard, and is done without.",
        (
            "integration/test_fact_judge.py::test_its_verdict_decides_what_the_rules_let_through",
            "integration/test_fact_judge.py::test_without_its_answer_the_rules_decide",
        ),
    ),
    (
        "2 pairs",
        "Labelled pairs: precision 0.98 at recall 0.70, nothing merged; a stream of changing facts.",
        (
            "unit/test_pairs.py::test_facts_are_superseded_rightly_and_nothing_is_merged",
            "benchmarks/contradictions",
        ),
    ),
)
