"""The page for other people's ground stations says what the code does."""

from places import ROOT

from stillwatch.tools.pages.wire import wire_page
from stillwatch.transport.live.control import COMMANDS
from stillwatch.transport.wire.messages import MESSAGES

PAGE = ROOT / "transport" / "WIRE.md"


def test_the_page_in_the_tree_is_the_one_that_the_types_make():
    assert PAGE.read_text() == wire_page(), "run: make pages"


def test_every_field_and_command_is_on_the_page():
    page = PAGE.read_text()
    names = {name for message in MESSAGES for name in message.__struct_fields__} | set(COMMANDS)
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
