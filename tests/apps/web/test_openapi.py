"""The table of routes, and the document that is made of it."""

import json
import subprocess
import sys

import msgspec
from openapi_spec_validator import validate
from tests.apps.web.served_house import ServedHouse

from lamina.apps.web.openapi import describe_api
from lamina.apps.web.routes import all_routes


def test_the_document_is_valid_openapi() -> None:
    document = json.loads(msgspec.json.encode(describe_api(all_routes())))
    validate(document)
    assert document["openapi"] == "3.1.0"


def test_every_route_is_there_once_and_says_what_it_is() -> None:
    table = all_routes()
    places = [(route.method, route.path) for route in table]
    assert len(set(places)) == len(places)
    for route in table:
        assert route.path.startswith("/api/")
        assert route.summary.endswith(".")
        assert route.right == "read" or route.method != "GET" or "folders" in route.path
        if route.method in ("GET", "DELETE"):
            assert route.body is None


def test_bodies_and_queries_refuse_what_they_do_not_know() -> None:
    for route in all_routes():
        for kind in (route.body, route.query):
            if kind is not None:
                assert kind.__struct_config__.forbid_unknown_fields, kind


def test_what_is_always_written_is_said_to_be_there() -> None:
    schemas = describe_api(all_routes())["components"]["schemas"]
    row = schemas["MessageRow"]
    assert row["required"] == list(row["properties"])
    # A question needs a text and nothing else.
    assert schemas["NewTurn"]["required"] == ["text"]
    # Values that leave out their defaults say so.
    assert "cached" not in schemas["Usage"].get("required", [])


def test_it_is_printed_and_served(house: ServedHouse) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "lamina.apps.web.openapi"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    assert house.client.get("/api/openapi.json").json() == json.loads(run.stdout)
