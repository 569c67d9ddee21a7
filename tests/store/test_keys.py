"""The keys are those of MicroDCS, below the configured prefix."""

import pytest

from edge.model.acceptance import RESERVED_ID_STARTS, ResourceKind
from edge.store.keys import JOB, Keys, KeySpec, key_specs

KEYS_OF_P = Keys("p")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (KEYS_OF_P.joborder("J1"), "p:joborder:J1"),
        (KEYS_OF_P.joborder_list("s"), "p:joborder:list:s"),
        (KEYS_OF_P.jobresponse("r"), "p:jobresponse:r"),
        (KEYS_OF_P.jobresponse_list("s"), "p:jobresponse:list:s"),
        (KEYS_OF_P.workmaster("w"), "p:workmaster:w"),
        (KEYS_OF_P.workmaster_list("s"), "p:workmaster:list:s"),
        (KEYS_OF_P.resource_list(ResourceKind.MATERIAL_CLASS, "s"), "p:materialclass:list:s"),
        (KEYS_OF_P.jobacceptance("s"), "p:jobacceptance:s"),
        (KEYS_OF_P.cededupe("h"), "p:cededupe:h"),
        (KEYS_OF_P.joborder_changes("s"), "p:joborder:changes:s"),
        (KEYS_OF_P.joborder_changes_global(), "p:joborder:changes:_global"),
        (KEYS_OF_P.publisher_cursors(), "p:publisher:stream-cursors"),
        (KEYS_OF_P.active_scopes(), "p:active-scopes"),
        (KEYS_OF_P.sfc_work("s"), "p:sfc:work:s"),
        (KEYS_OF_P.sfc_execution("J1"), "p:sfc:execution:J1"),
        (KEYS_OF_P.sfc_active_jobs(), "p:sfc:active-jobs"),
    ],
)
def test_a_key_has_the_name_it_has_in_microdcs(key: str, expected: str) -> None:
    assert key == expected


@pytest.mark.parametrize("spec", key_specs(), ids=lambda spec: spec.name)
def test_accepted_id_cannot_collide_with_a_list_key(spec: KeySpec) -> None:
    """Check that `word:` begins no id where both `x:{id}` and `x:word:…` exist."""
    pattern = spec.pattern
    beside = [key_spec.pattern.removesuffix("{id}") for key_spec in key_specs() if key_spec.pattern.endswith("{id}")]
    for stem in beside:
        rest = pattern.removeprefix(stem)
        if rest not in {pattern, "{id}"}:
            assert rest.startswith(RESERVED_ID_STARTS)


def test_expression_matches_keys_of_the_pattern_only() -> None:
    expression = KeySpec("joborder", "joborder:{id}", "hash", JOB, "A job").expression()
    assert expression.fullmatch("joborder:J:1\n2")
    assert not expression.fullmatch("joborders:J1")
