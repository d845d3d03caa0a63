"""The numbers that events rest on beside the settings: each with its unit and why it is what it is.

Read by the modules of agent/events. It must not hold what a user may set: that is the section [events].
"""

NS = 1_000_000_000  # ns a second

# -- the life of an alert ------------------------------------------------------------------------------------

SAME_PLACE = 0.25  # share of the smaller box: from this overlap with the last event's, a new one is at the same place
SUBSIDED = 0.7  # of an event's peak: below this for `gap_s` it is over, and what is left is what it left behind
RISEN = 1.35  # times what is left of the last event: from here something else has come
MOST_PER_HOUR = 3600.0  # alerts: one a second is no budget any more

# -- what is told of it --------------------------------------------------------------------------------------

HISTORY = 32  # scored frames: their rarities travel with an alert, and a thin link has room for so many
RAISED_SEVERITY = 0.2  # of 1: an alert that is just raised
SEVERITY_PER_DECADE = 0.2  # of 1, for each ten times rarer: ten thousand times rarer than raised is the worst

# -- categories ----------------------------------------------------------------------------------------------

FOLLOWED = 512  # components: twice what the patch mixture may hold; the ones not seen for longest give way
LASTING_EPOCHS = 4  # models that a component must live through to be a category
LEAST_PATCHES = 4  # in one frame, to count as seen: a stray patch is no thing
BIRTH_EPOCHS = 2  # models after an event's last frame: the one that learnt it may still be under way at the first
SETTLED_EPOCHS = 8  # models before which everything is new, and nothing is news
STAYS = 0.5  # share of frames that what came and stays is seen in; and of the past, in which nobody was there
CELLS = 12  # across and down: where in the picture something is
STILL = 0.7  # share of the last three seconds that its places must look as they do: who passes changes them
RARE = 0.05  # share of frames: a category seen more often does not return
ALWAYS = 0.88  # share of frames: a place seen less often does not vanish
GAP = 0.25  # of the places where something was, unlike themselves once it is gone: patches with other names have none
GAP_LOOKS = 3  # labelled frames of an absence that are asked: what stays away for two seconds begins to be usual
WATCHED_S = 60.0  # seconds: how long something must have been there before its absence means anything
PRESENCE_FRAMES = 150  # labelled frames that presence is averaged over: a minute at ten a second, one of four of them
MOST_MISSING = 0.3  # of what is always there, gone at once: more is another picture; a parked lorry hides a tenth
KNOWN_TOPICS = 16  # that a rare view was rare for: a place has about eight
LONGER_AWAY = 1.5  # times the longest absence so far: what comes again as it always did is no news

# -- events that were there before (repeats.py) ---------------------------------------------------------------

EVENT_BLOCKS = 4  # across and down: where in the picture an event is
EVENT_AXES = 16  # first values of a row: the others are small
EVENT_STATES = 512  # looks remembered, some ten an event: those not seen for longest give way,
STEADY_STATE = 8  # and one of so many events so many times later
SAME_LAYOUT = 0.936  # cosine: the same car or flicker begins at .95 to 1, rain at .94, others at .9 and less
SAME_LOOK = 0.024  # of a row's length: the same again .02, another thing at the place .04 and more
SAME_LIGHT = 0.32  # logarithm: exposure and shadows change it by .3
SAME_CHROMA = 0.08  # logarithm of a colour ratio: light changes it by .05, another coat by more
ONE_STATE = 0.3  # of what is the same: looks that are nearer count as one
GROWN = 1.5  # times the longest of those before: what stays longer is news
OTHER_S = 1.0  # seconds in which an event looks like none before: a drop or a flake is gone by then
UNSETTLED_S = 300.0  # seconds in which everything is told, as HABITUATED_S of visitors, from a budget of their own

# -- the view that the camera has (camera.py) ----------------------------------------------------------------

ONE_CHANGE_S = 20.0  # seconds: a knock that changes the whole picture is told by the gate, and known as one 8 s later
TOUR_VIEWS, TOUR_S = 3, 3600.0  # new views in so many seconds before one more: nobody knocks a camera so often

# -- how far to believe it (certainty.py) --------------------------------------------------------------------

LOOK_S = 0.4  # seconds between two looks at the learning frames: a walker has gone a cell by then
LOOK_CELLS = (60, 80)  # rows, columns: sensor noise and compression are averaged away
CHANGED_LEVELS = 12  # grey levels by which a cell differs where something moved
CHANGED_CELLS = 6  # cells: 1 in 800 of the view, less is a leaf
BUSY_LOOKS = 0.25  # of the looks: where something moves so often, the start is no picture of an empty place
UNSURE_S = 120.0  # seconds of judging after a busy start: by then looped clips raise the same events from every frame
ENOUGH_VISITS = 8  # visits known by then: fewer are no sample of what comes
WEATHER_S = 5.0  # seconds that frames must be hardly judged until it is said, and its end: a flash is no weather
LONGEST_UNSURE_S = 600.0  # seconds: where so few come, the start weighs little by now
