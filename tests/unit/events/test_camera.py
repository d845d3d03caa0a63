"""A view that the camera never had is news; one that it had is none, and a change is told once."""

from stillwatch.events.camera import CameraView, Turn

NS = 10**9


def test_each_frame_says_whether_its_view_is_new_back_or_the_same():
    camera = CameraView()
    turns = [camera.update(view, 3600 * NS * hour) for hour, view in enumerate((0, 0, 1, 1, 0, 2, 1))]
    none, new, back = Turn.NONE, Turn.NEW, Turn.BACK
    assert turns == [none, none, new, none, back, new, back]


def test_a_camera_on_a_tour_is_told_three_times_and_a_later_knock_again():
    camera = CameraView()
    turns = [camera.update(view, 30 * NS * view) for view in range(100)]
    assert turns == [Turn.NONE, Turn.NEW, Turn.NEW, Turn.NEW, *[Turn.TOUR] * 96]
    assert camera.update(100, (2970 + 3601) * NS) is Turn.NEW


def test_what_the_gate_has_told_of_is_not_told_again_for_twenty_seconds():
    camera = CameraView()
    assert camera.tell(5 * NS)
    assert not camera.tell(24 * NS)
    assert camera.tell(50 * NS)
    assert camera.tell(4 * NS)  # the stream's time has begun anew
