"""Which examples teach, on the page: approving, rejecting, restoring, undoing, and the history of it."""

from __future__ import annotations

from browser import Open
from playwright.sync_api import Locator, Page, Route, expect
from running import RunningServer

PO = b"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "the sea"
msgstr "die See"

#, fuzzy
msgid "the house"
msgstr "das Haus"
"""


def import_file(server: RunningServer, memory: int, name: str, content: bytes) -> None:
    upload = {"file": (name, content)}
    job = server.http.post(f"/v1/memories/{memory}/import", files=upload, data={"pair": "en-de"}).json()
    assert server.finished(job)["state"] == "done"


def add(server: RunningServer, memory: int, source: str, target: str) -> int:
    example = {"source": source, "target": target, "pair": "en-de"}
    return server.http.post(f"/v1/memories/{memory}/segments", json=example).json()["id"]


def teaching(server: RunningServer, memory: int) -> list[str]:
    found = server.http.get(f"/v1/memories/{memory}/segments", params={"pair": "en-de"}).json()["segments"]
    return [segment["target"] for segment in found]


def examples(page: Page) -> Locator:
    return page.get_by_role("region", name="Examples").get_by_role("listitem")


def undo(page: Page) -> None:
    page.locator("#notices").get_by_role("button", name="Undo").click()


def test_drafts_are_counted_listed_and_approved(open_page: Open, memory: int, server: RunningServer) -> None:
    page = open_page(f"/#/memory/{memory}")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files([{"name": "a.po", "mimeType": "text/plain", "buffer": PO}])
    expect(page.get_by_role("region", name="Import")).to_contain_text("a.po: 2 added (1 as a draft)")
    expect(examples(page)).to_have_count(1)
    expect(examples(page).locator(".badge")).to_have_count(0)

    page.get_by_label("Status").select_option("Drafts")
    expect(examples(page)).to_contain_text("das Haus")
    expect(examples(page).locator(".badge")).to_have_text("draft")
    page.get_by_role("button", name="Approve the house").click()
    expect(examples(page)).to_have_count(0)
    expect(page.get_by_role("region", name="Sizes")).to_contain_text("2 examples")
    assert teaching(server, memory) == ["die See", "das Haus"]
    undo(page)
    expect(examples(page).locator(".badge")).to_have_text("draft")
    assert teaching(server, memory) == ["die See"]


def test_a_rejection_is_undone_and_no_other_translation_of_the_source_suffers(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    import_file(server, memory, "two.tsv", b"source\ttarget\nopen\tauf\nopen\toffen\n")
    page = open_page(f"/#/memory/{memory}")
    examples(page).filter(has_text="auf").get_by_role("button", name="Reject").click()
    expect(page.locator("#notices")).to_contain_text("The example was rejected.")
    expect(examples(page)).to_have_count(1)
    assert teaching(server, memory) == ["offen"]
    undo(page)
    expect(examples(page)).to_have_count(2)
    assert teaching(server, memory) == ["auf", "offen"]

    examples(page).filter(has_text="offen").get_by_role("button", name="Delete").click()
    expect(examples(page)).to_have_count(1)
    undo(page)
    expect(examples(page)).to_have_count(2)
    assert teaching(server, memory) == ["auf", "offen"]

    examples(page).filter(has_text="offen").get_by_role("button", name="Reject").click()
    expect(examples(page)).to_have_count(1)
    page.get_by_label("Status").select_option("Rejected")
    expect(examples(page).locator(".badge")).to_have_text("rejected")
    expect(examples(page)).to_contain_text("offen")


def test_the_history_says_what_happened_and_brings_older_versions_back(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    old, new = (add(server, memory, "open", target) for target in ("auf", "offen"))
    page = open_page(f"/#/memory/{memory}")
    page.get_by_label("Status").select_option("Replaced")
    expect(examples(page).locator(".badge")).to_have_text("replaced")
    page.goto(f"/#/memory/{memory}/en-de/{new}")
    history = page.get_by_role("region", name="History")
    expect(history.get_by_role("listitem")).to_have_count(3)
    expect(history).to_contain_text(f"Replaced: example {old}, by this example")
    history.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("button", name="Restore open")).to_be_visible()  # now it is this one
    expect(page.locator("form .badge")).to_have_text("replaced")
    assert teaching(server, memory) == ["auf"]
    undo(page)
    expect(page.get_by_role("button", name="Reject open")).to_be_visible()
    assert teaching(server, memory) == ["offen"]

    page.get_by_label("German").fill("auf und zu")
    page.get_by_role("button", name="Save").click()
    expect(history).to_contain_text(f"Edited: example {new}, now this example")
    assert teaching(server, memory) == ["auf und zu"]
    undo(page)
    expect(page.get_by_label("German")).to_have_value("offen")
    assert teaching(server, memory) == ["offen"]


def test_examples_of_one_source_say_where_they_stand(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    for target, context in (("auf", "menu"), ("offen", "state")):
        example = {"source": "open", "target": target, "pair": "en-de", "context": context}
        assert server.http.post(f"/v1/memories/{memory}/segments", json=example).is_success
    page = open_page(f"/#/memory/{memory}")
    expect(examples(page)).to_have_count(2)
    expect(examples(page).filter(has_text="auf")).to_contain_text("menu")
    expect(examples(page).filter(has_text="offen")).to_contain_text("state")


def test_nothing_is_changed_in_a_list_that_is_being_left(
    open_page: Open, memory: int, server: RunningServer
) -> None:
    """A change made there would not be seen in what is shown next."""
    add(server, memory, "the sea", "die See")
    page = open_page(f"/#/memory/{memory}")
    held: list[Route] = []
    page.route("**/history?*", lambda route: held.append(route))
    with page.expect_request("**/history?*"):
        page.get_by_role("link", name="Edit the sea").click()
    place = page.locator("button", has_text="Reject").bounding_box()
    assert place is not None
    page.mouse.click(place["x"] + 5, place["y"] + 5)
    page.wait_for_timeout(200)
    (route,) = held
    route.continue_()
    page.unroute("**/history?*")
    expect(page.get_by_role("region", name="History")).to_be_visible()
    assert teaching(server, memory) == ["die See"]
    page.get_by_role("button", name="Reject the sea").click()
    expect(page.get_by_role("region", name="History")).to_contain_text("Rejected: this example")
