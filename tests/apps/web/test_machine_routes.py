"""Memory, targets, models and keys over HTTP: what is kept, what is told, and what never is."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.apps.web.served_house import ServedHouse, read_events, refused, told
from tests.browser.vendor import Vendor

from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS

KEY = "sk-very-secret-0123456789"


class KeyringFake:
    """A system's keyring in memory, with the methods that one has."""

    name = "fake"
    priority = 5

    def __init__(self) -> None:
        self.passwords: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, name: str) -> str | None:
        return self.passwords.get((service, name))

    def set_password(self, service: str, name: str, password: str) -> None:
        if self.is_locked:
            raise RuntimeError(f"locked: {password}")
        self.passwords[service, name] = password

    def delete_password(self, service: str, name: str) -> None:
        del self.passwords[service, name]


def install(monkeypatch: pytest.MonkeyPatch, ring: object) -> None:
    """As if the package `keyring` were here, with this keyring in it."""
    module = ModuleType("keyring")
    errors, backends = ModuleType("keyring.errors"), ModuleType("keyring.backends")
    fail, null = ModuleType("keyring.backends.fail"), ModuleType("keyring.backends.null")
    vars(errors)["KeyringError"] = RuntimeError
    vars(fail)["Keyring"] = FailKeyring
    vars(null)["Keyring"] = type("NullKeyring", (), {})
    vars(backends).update(fail=fail, null=null)
    vars(module).update(
        get_keyring=lambda: ring,
        get_password=getattr(ring, "get_password", None),
        errors=errors,
        backends=backends,
    )
    module.__spec__ = sys.modules["json"].__spec__
    for name, part in {
        "keyring": module, "keyring.errors": errors, "keyring.backends": backends,
        "keyring.backends.fail": fail, "keyring.backends.null": null,
    }.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, name, part)


class FailKeyring:
    """What a system without a keyring has."""

    priority = 0


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch, house: ServedHouse) -> KeyringFake:
    ring = KeyringFake()
    install(monkeypatch, ring)
    monkeypatch.delenv("OPENAI_API_KEY")
    return ring


def test_a_key_is_kept_in_the_keyring_used_and_never_given_back(
    house: ServedHouse, keyring: KeyringFake, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [house.client.put("/api/keys/openai", json={"key": f" {KEY}\n"})]
    assert keyring.passwords == {("lamina", "openai"): KEY}
    row = answers[0].json()["keys"][0]
    assert (row["provider"], row["has_key"], row["source"]) == ("openai", True, "keyring")
    assert answers[0].json()["keyring"] == "fake"
    # A session finds it where it looks for keys.
    house.ask(house.begin(), "When?")
    answers.append(house.client.post("/api/keys/openai/try", json={}))
    assert answers[-1].json()["works"]
    assert answers[-1].json()["models"] > 0
    answers.append(house.client.get("/api/keys"))
    answers.append(house.client.delete("/api/keys/openai"))
    assert keyring.passwords == {}
    answers.append(house.client.delete("/api/keys/openai"))
    assert refused(answers[-1]) == (400, "usage")
    for answer in answers:
        assert KEY not in answer.text
    assert KEY not in caplog.text


def test_the_environment_goes_before_the_keyring(
    house: ServedHouse, keyring: KeyringFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring.passwords["lamina", "anthropic"] = KEY
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    rows = {row["provider"]: row for row in told(house.client.get("/api/keys"))["keys"]}
    row = rows["anthropic"]
    assert (row["source"], row["variable"]) == ("environment", "ANTHROPIC_API_KEY")
    assert rows["gemini"]["variables"] == ["GEMINI_API_KEY", "GOOGLE_API_KEY"]
    assert "local" not in rows


def test_a_keyring_that_fails_says_what_to_do_and_not_the_key(
    house: ServedHouse, keyring: KeyringFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring.is_locked = True
    answer = house.client.put("/api/keys/openai", json={"key": KEY})
    assert refused(answer) == (400, "usage")
    assert "OPENAI_API_KEY" in answer.text
    assert KEY not in answer.text
    install(monkeypatch, FailKeyring())
    keys = told(house.client.get("/api/keys"))
    assert keys["keyring"] == ""
    assert "environment" in keys["problem"]
    answer = house.client.put("/api/keys/openai", json={"key": KEY})
    assert refused(answer) == (400, "usage")
    assert "OPENAI_API_KEY" in answer.text


def test_what_is_no_key_and_no_provider_is_refused(
    house: ServedHouse, keyring: KeyringFake
) -> None:
    for key in ("", "  ", "a b", "a\nb", "a\u0000b"):
        assert refused(house.client.put("/api/keys/openai", json={"key": key})) == (400, "usage")
    for provider in ("nobody", "local", "%2e%2e", "lamina%2Fopenai"):
        answer = house.client.put(f"/api/keys/{provider}", json={"key": KEY})
        assert answer.status_code == 404, provider
        assert house.client.post(f"/api/keys/{provider}/try", json={}).status_code == 404
    assert keyring.passwords == {}


def test_a_key_that_does_not_work_is_told_so_in_our_words(
    house: ServedHouse, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{vendor.url}/nowhere")
    trial = told(house.client.post("/api/keys/openai/try", json={"key": KEY}))
    assert (trial["works"], trial["code"]) == (False, "provider")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    answer = house.client.post("/api/keys/openai/try", json={"key": KEY})
    assert (answer.json()["works"], answer.json()["code"]) == (False, "provider_busy")
    assert KEY not in answer.text
    monkeypatch.delenv("OPENAI_API_KEY")
    trial = told(house.client.post("/api/keys/openai/try", json={}))
    assert trial["code"] == "key_missing"


def test_memory_is_read_and_written_if_it_is_still_what_it_was(house: ServedHouse) -> None:
    empty = told(house.client.get("/api/memory"))
    assert (empty["text"], empty["etag"]) == ("", "")
    place = Path(empty["path"])
    kept = told(house.client.put("/api/memory", json={"text": "- I sail.\n"}))
    assert place.read_text("utf-8") == "- I sail.\n"
    place.write_text("- I row.\n", "utf-8")
    late = {"text": "x", "etag": kept["etag"]}
    assert refused(house.client.put("/api/memory", json=late)) == (409, "file_changed")
    now = told(house.client.get("/api/memory"))
    assert now["tokens"] > 0
    told(house.client.put("/api/memory", json={"text": "", "etag": now["etag"]}))
    assert place.read_text("utf-8") == ""
    huge = {"text": "x" * 100_000, "etag": told(house.client.get("/api/memory"))["etag"]}
    assert refused(house.client.put("/api/memory", json=huge)) == (400, "usage")
    place.write_bytes(b"\xff\xfe")
    broken = told(house.client.get("/api/memory"))
    assert "UTF-8" in broken["problem"]


def test_targets_have_prices_windows_and_what_is_in_their_way(house: ServedHouse) -> None:
    every = told(house.client.get("/api/targets"))
    by_name = {choice["target"]["target"]: choice for choice in every["targets"]}
    gpt = by_name["openai:gpt-5"]
    assert (gpt["missing"], gpt["is_family"]) == ("", False)
    assert gpt["price"] == "$1.25 in, $10 out per million tokens"
    assert gpt["target"]["window"] > 100_000
    assert gpt["target"]["prices"]["source"]
    assert by_name["openai:*"]["is_family"]
    assert "ANTHROPIC_API_KEY" in by_name["anthropic:*"]["missing"]
    assert by_name["anthropic:*"]["missing_code"] == "key_missing"
    assert every["default"] == "openai:gpt-5"
    some = told(house.client.get("/api/targets", params={"q": "GPT mini"}))["targets"]
    assert some
    assert all("mini" in choice["target"]["target"] for choice in some)
    assert told(house.client.get("/api/targets", params={"q": "nobody"}))["targets"] == []


def place_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file where the model would be, and as large."""
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "cache"))
    model = LOCAL_MODELS["smollm2-135m"]
    model.path.parent.mkdir(parents=True)
    model.path.write_bytes(b"GGUF")
    os.truncate(model.path, model.size)
    return model.path


def test_models_are_listed_and_one_that_is_here_is_fetched_at_once(
    house: ServedHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_model(tmp_path, monkeypatch)
    listed = told(house.client.get("/api/models"))
    by_name = {model["name"]: model for model in listed["models"]}
    small = by_name["smollm2-135m"]
    assert (small["kind"], small["here"], small["target"]) == ("chat", "yes", "local:smollm2-135m")
    assert small["is_default"]
    assert listed["free"] > 0
    job = told(house.client.post("/api/models/smollm2-135m/fetch", json={}))["job"]
    events = list(read_events(house.client, f"/api/jobs/{job}/events"))
    assert events[-1].data["state"] == "done"
    assert events[-1].data["result"]["target"] == "local:smollm2-135m"
    for name in ("nobody", "%2e%2e", "%2Fetc%2Fpasswd", "~%2Fmine.gguf"):
        assert house.client.post(f"/api/models/{name}/fetch", json={}).status_code == 404
        assert house.client.delete(f"/api/models/{name}").status_code == 404


def test_a_model_is_removed_from_the_folder_of_models(
    house: ServedHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "empty"))
    assert refused(house.client.delete("/api/models/smollm2-135m")) == (400, "usage")
    file = place_model(tmp_path, monkeypatch)
    gone = told(house.client.delete("/api/models/smollm2-135m"))
    assert gone["name"] == "smollm2-135m"
    assert not file.exists()
