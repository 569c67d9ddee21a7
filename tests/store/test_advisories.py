import pytest

from edge.store.advisories import find_advisories


@pytest.mark.parametrize(
    ("product", "version", "expected"),
    [
        ("redis", "7.0.15", ["CVE-2025-49844"]),
        ("redis", "8.0.2", ["CVE-2025-49844", "CVE-2026-23479"]),
        ("redis", "8.0.4", ["CVE-2026-23479"]),
        ("redis", "8.6.3", []),
        ("redis", "6.2.20", []),
        ("redis", "9.0.0-rc1", []),
        ("valkey", "8.1.1", ["CVE-2025-49844"]),
        ("valkey", "8.1.4", []),
        ("valkey", "9.0.1", ["CVE-2026-27623"]),
        ("valkey", "9.1.2", []),
    ],
)
def test_a_vulnerable_server_is_found_by_its_version(product: str, version: str, expected: list[str]) -> None:
    info = {"server_name": product, f"{product}_version": version, "redis_version": "7.2.4"} | (
        {"redis_version": version} if product == "redis" else {}
    )
    assert [each.id for each in find_advisories(info)] == expected
