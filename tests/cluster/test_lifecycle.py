"""What `kster cluster up` says before it starts anything."""

from __future__ import annotations

import pytest

from kster.cluster.lifecycle import warn_where_open


def test_a_cluster_that_others_can_reach_is_warned_of_unless_it_is_encrypted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    assert warn_where_open("127.0.0.1") is None
    assert "not encrypted" in (warn_where_open("10.0.0.1") or "")
    monkeypatch.setenv("RAY_USE_TLS", "1")
    assert warn_where_open("10.0.0.1") is None
