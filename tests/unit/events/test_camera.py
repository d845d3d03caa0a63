"""A view that the camera never had is news; one that it had is none, and a change is told once."""

from stillwatch.events.camera import CameraView, Turn

NS = 10**9


def test_each_frame_says_whether_its_view_is_new_back_or_the_same():
    camera = CameraView()
    turns = [camera.update(view) for view in (0, 0, 1, 1, 0, 2, 1)]
    none, new, back = Turn.NONE, Turn.NEW, Turn.BACK
    assert turns == [none, none, new, none, back, new, back]


def test_what_the_gate_has_told_of_is_not_told_again_for_twenty_seconds():
    camera = CameraView()
    assert camera.tell(5 * NS)
    assert not camera.tell(24 * NS)
    assert camera.tell(50 * NS)
    assert camera.tell(4 * NS)  # the stream's time has begun anew
