"""What every command shares: where the shared data lies, a line of progress, an orderly stop, one voice.

Owns: nothing that outlives a command.
In: options, signals. Out: paths, lines on the terminal.
Imports: the agent, transport.
"""

from stillwatch.tools.shared import words
from stillwatch.tools.shared.data import add_data_argument, find_data, find_data_or_none
from stillwatch.tools.shared.json_output import json_text, print_json, print_rows
from stillwatch.tools.shared.logs import FORMS, set_up_logging
from stillwatch.tools.shared.paths import existing, existing_source, hold_out
from stillwatch.tools.shared.pictures import read_image, write_image
from stillwatch.tools.shared.progress import ProgressLine
from stillwatch.tools.shared.results import result_stream, write_result
from stillwatch.tools.shared.signals import end_while_starting, stop_on_signals
from stillwatch.tools.shared.stream_time import StreamTime
from stillwatch.tools.shared.voice import RunVoice

__all__ = [
    "FORMS",
    "set_up_logging",
    "ProgressLine",
    "RunVoice",
    "StreamTime",
    "add_data_argument",
    "end_while_starting",
    "existing",
    "existing_source",
    "hold_out",
    "find_data",
    "find_data_or_none",
    "json_text",
    "print_json",
    "print_rows",
    "read_image",
    "result_stream",
    "stop_on_signals",
    "words",
    "write_image",
    "write_result",
]
