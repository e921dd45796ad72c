"""Requests made out of the API's own document: none breaks it, and answers are as it says."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from httpx2 import InvalidURL
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from nodescope.web.openapi import describe
from nodescope.web.routes import ROUTES

_CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
_EXAMPLES = {True: 10, False: 40}  # of a slow route, and of another; half of them wrong


def test_the_document_names_every_route(client: TestClient) -> None:
    document = client.get("/api/openapi.json").json()
    assert document == describe(ROUTES)
    assert set(document["paths"]) == {route.path for route in ROUTES}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)
def test_no_request_breaks_it(client: TestClient, route: Any) -> None:
    schema = schemathesis.openapi.from_dict(describe(ROUTES))
    schema.config.update(base_url="http://localhost")
    operation = schema[route.path]["GET"]
    modes = schemathesis.GenerationMode
    strategies = [operation.as_strategy(modes.POSITIVE)]
    if route.parameters:
        strategies.append(operation.as_strategy(modes.NEGATIVE))

    for strategy in strategies:

        @given(case=strategy)
        @settings(
            max_examples=_EXAMPLES[route.slow],
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Any) -> None:
            sent = case.as_transport_kwargs()
            try:
                answer = client.request(
                    sent["method"], route.path, params=sent.get("params"), headers={}
                )
            except InvalidURL:
                return  # longer than the client sends
            case.validate_response(answer, checks=_CHECKS)

        ask()
