"""The numbers that novelty rests on beside the settings: each with its unit and why it is what it is.

Read by the modules of agent/novelty. It must not hold what a user may set: that is the section [novelty].
"""

# -- the frame's score ---------------------------------------------------------------------------------------

NS = 1e9  # nanoseconds a second: stream times come in them
NOVEL = 3.0  # deviations above the usual: from here a patch is part of a region
HIGHEST = 30.0  # deviations: one absurd patch must not be a frame's score
NEIGHBOURS = 3  # patches across: things cover neighbouring patches, noise does not
MAX_REGIONS = 8  # regions of a frame: more are no places to point at
LABEL_FRAMES = 4  # of so many scored frames one has its patches named: that costs more than judging it
SETTLING_FRAMES = 6  # scored frames until a baseline means anything
LONGEST_STEP_S = 10.0  # seconds from one judged frame to the next: longer ones were not watched
CALIBRATION_FRAMES = 16  # scored frames before a rarity is believed
LEAST_SPREAD = 0.8  # deviations of patches: the smallest of a moving frame's figure, and what it is taken for first

# -- a moving camera: what was seen of patches (patch_memory.py), and how far they usually are (usual_distances.py)

KEPT_ROWS = 2048  # rows kept of all that was watched; four times as many rank frames no better
KEPT_ROWS_PER_FRAME = 64  # rows: a frame's patches resemble each other, more of them say little
KNOWN_AFTER_S = 2.4  # seconds until a row is remembered: what is in view must not be near to itself
COLOUR_WEIGHT = 3.0  # of a ratio of colours in a distance: edges are much alike wherever they are, colours are not
STRIDE = 2  # patches: each is kept and found for its neighbours as well, whose windows overlap with its own
USUAL_FRAMES = 500  # frames that the usual distance of patches is an average over
USUAL_REACH = (5, 3)  # places across and down that a place's own is a mean over: a view has rows
USUAL_PLACE_FRAMES = 8.0  # frames: after so many a place's own distance counts half, what holds anywhere half
EARLY_USUAL_FRAMES = 20  # frames in which a place's own spread is not known yet
FARTHEST_TAUGHT = 3.0  # deviations: what is farther teaches no more: something strange is no rule at once
FARTHEST = 1e9  # units of descriptors: no row is so far from another
LEAST_PLACE_DEVIATION = 0.3  # of the usual one: no place is more exact, an even sky neither
LEAST_DEVIATION = 1e-3  # units of descriptors: of rows that all are alike

# -- the spread of frames ------------------------------------------------------------------------------------

SPREAD_CLIP = 2.5  # deviations: how far one frame may pull the spread
SPREAD_DOUBTED_SHARE = 0.3  # of what others teach: an event nobody noticed must not hide the next
SPREAD_PRIOR_FRAMES = 10  # frames that the expected deviation counts for

# -- rarity --------------------------------------------------------------------------------------------------

N_BINS = 512  # bins of the histogram: 0.05 of a unit each near zero
LINEAR = 1.0  # deviations: scores are spread by asinh, linear within one unit, logarithmic beyond
REACH = 12.0  # asinh units on each side of 0: scores to 80,000
TAIL_SHARE = 0.1  # of the frames: the tail is fitted to the highest tenth
LEAST_EXCESS = 0.5  # deviations, the mean excess of a normal over its upper tenth: no tail is believed to fall faster
HEAVIEST_TAIL = 0.5  # shape of the generalised Pareto tail: finite mean and nearly finite variance
PRIOR_EXCEEDANCES = 50.0  # frames: an exponential tail is believed until so many exceedances say otherwise
DOUBTED_RARITY = 10.0  # one frame in N: a rarer one teaches less, by the root of it: an event nobody noticed, perhaps
FIRST_FRAMES = 10.0  # frames: until so many are known, they are doubted by what is plausible instead
PLAUSIBLE = 3.0  # deviations: a first frame above is taken to be e times rarer with each more
LONGEST_RUN = 32  # doubted frames in a row are one excursion: the k-th counts 1/k of a frame, but never less than this
CREDULOUS_FRAMES = 1000.0  # frames: with so many remembered, rare ones are doubted half as much: the scene's own
MAX_RARITY = 1e9  # one frame in N: beyond it an extrapolation says nothing

# -- whether the camera moves --------------------------------------------------------------------------------

DECISION_FRAMES = 12  # frames: as many as the encoder's warm-up takes, so that nothing waits for the answer
WIDTH, HEIGHT = 80, 60  # pixels: coarse enough that the shake of a mast is a fraction of one
FIRST_LAG = 4  # frames: a slow vehicle needs some to leave its place
MOVED_SHARE = 0.6  # of the textured blocks: people, cars, snow, hard shade move fewer, a moving camera seven of ten
STILL_SHARE = 0.3  # of the textured blocks: a moving camera stands where fewer move; open water has few to tell by
WINDOW_S = 2.0  # seconds that a window lasts at least, once the kind of camera is known
DISSENT_WINDOWS = 3  # windows more that must say otherwise than do not: a gust is no vehicle,
STOPPED_WINDOWS = 15  # and a vehicle that stops for as long as it went, up to half a minute, goes on,
AGREED_WINDOWS = 30  # and as many more at each doubling of a minute in which the others said what is believed

# -- a fixed camera: which view it has (viewpoint.py) ---------------------------------------------------------

KNOWN_VIEWPOINTS = 2  # views: where it looks, and where it looked before; each has a baseline of its own
VIEW_SIDE = 240  # pixels of the longer side: a knock is told from shake by pixels of this size
AVERAGED_S = 0.7  # seconds after which a frame counts half: who walks, rain and snow go from the picture
AVERAGED_EVERY_S = 0.15  # seconds between frames that are averaged: more of them average no more away
CALM_LOOK_S = 4.0  # seconds between looks of some 20 ms, where the last one found the view as it was,
LOOK_S = 2.0  # and where it did not: a knock is known after six to eight
AS_IT_WAS = 0.8  # correlation of fine structure in a block: a shift of one pixel leaves 0.7 to 0.9, of three 0.1 to 0.7
BLOCK_PX, FINE_PX = 30, 15  # pixels of such a block, and of the mean that is taken off it: light, clouds, fog
LEAST_TEXTURE = 1.5  # grey levels of deviation: a block below is noise
FEATURES_PER_VIEW = 300  # the strongest: matching takes 2 ms
LEAST_CONTRAST = 0.01  # of SIFT's features: a quarter of the usual, a road has few others
MATCHED_PX = 2.5  # pixels that a feature may be from where the others say it is
LEAST_MATCHES = 12  # features that agree: by chance 3 to 8 do
CELLS, LEAST_CELLS = 4, 6  # of the picture across and down, and how many hold them: a written clock fills four
SURE_MATCHES = 20  # before the camera is said to have gone
SAME_PX = 4.0  # pixels that corners are from their places on the mean: a mast's shake of 2 reaches 3,
WENT_PX = 5.0  # a camera that is a fiftieth of its view from where it was is knocked
WENT_LOOKS = 3  # looks in a row that find it at the same place
RICH_VIEW = 100  # features: a picture with fewer may be dusk or fog
STILL_PX = 1.5  # pixels: of the picture since the last look, where it stays
OTHER_LOOKS = 30  # looks in a row: a hard shadow or a truck in the way has gone by then, another view has not
VIEW_FOLLOWS = 8  # looks after which the view takes an eighth of what is seen: it follows the light of minutes

# -- a fixed camera: what is usual at a place (place_memory.py) ----------------------------------------------

SAMPLES = 48  # frames kept of all that was watched: one in fifty is told from none, 5 MB at 384 x 288
LEAST_SAMPLES = 4  # samples before anything is said: under a second of a camera's stream
LIKE_SHARE = 0.06  # of the samples that must be like a patch: below, it is not usual at its place
LIKE_REACH = 2.0  # times the usual distance at a place: what is nearer to a sample is like it
RETURNS_S = 0.8  # seconds between two looks at a place for what returned: away for three of them, it was away
LEAST_RETURNS = 6  # fewer are no habit
RETURNS_PRIOR_S = 5.0  # seconds without a return that are taken for granted
FIXED_POINT = 8192.0  # steps of one unit of a row: 16 bits reach to 4, rows to 2.5
LEAST_STEPS = 32.0  # steps: an edge of one grey level moves a row by up to 41, and codecs leave such edges on walls
SAMPLE_S = 0.2  # seconds between candidates: closer frames say the same again
RECENT = 8  # frames of the last seconds
RECENT_S = 0.35  # seconds between them: with RECENT_SHARE, what stands still for two seconds is usual
RECENT_SHARE = 0.7  # of the last seconds that must be like a patch
LEAST_UNIT = 0.5  # of the typical place's usual distance: no place is more exact than its camera
CHANGED_SHARE = 0.12  # of the samples that must be others before places are measured again,
SWEEP_FRAMES = 8  # frames that a measurement is spread over where there are many places,
LEAST_STRIPE = 128  # places that are measured a frame at least: where there are few, one frame does
EARLY_SAMPLES = 6.0  # with so many samples distances count half: moments near each other are alike
MOST_UNLIKE = 4.0  # logarithm of the distance over the usual: one absurd patch must not be a whole region

# -- a fixed camera: in what light its places usually are (light.py) -----------------------------------------

MOST_LIGHT = 2.0  # times as bright or as dark as usual: a hard shade halves the light, more is another thing
DARK = 16.0  # grey levels added before logarithms: where it is darker, noise says more than light
LIT_REACH = 5  # patches across that light is a mean over: it falls on more than one, things are smaller

# -- a fixed camera: what stays from frame to frame (coherence.py) -------------------------------------------

UNLIKE = 1.0  # unlikeness from which a patch is unlike its place: e times the usual distance
COHERENT_S = 0.3  # seconds between two frames at most: after a longer pause what passes may be anywhere
INCOHERENT = 0.1  # of agreement above chance: rain and flicker have as little,
COHERENT = 0.4  # things have as much, even a car at five frames a second
LITTLE_OUT = 0.05  # of the picture, unlike its place: up to here each group is judged alone, from twice that all too
SOME_OUT = 0.15  # up to here all of it together is things that agree by INCOHERENT to SOME_COHERENT,
SOME_COHERENT = 0.3  # a car in the rain does by .3, rain alone by .1
MUCH_OUT = 0.4  # from here on by MUCH_INCOHERENT to MUCH_COHERENT:
MUCH_INCOHERENT = 0.3  # rain over half of the picture has .1 to .35,
MUCH_COHERENT = 0.5  # hands and cars that fill so much .8, in rain .5
LEAST_ABSENT = 0.02  # of the picture, taken to have been as always: where all of it stood out, nothing is above chance

# -- a fixed camera: what changes nearly the whole picture (whole_view.py) -----------------------------------

VIEW_BLOCKS = 4  # blocks across and down: a sixteenth is what a person near the camera fills
VIEWS = 48  # looks kept of all that was watched, as many as of each place
LEAST_VIEWS = 4  # before anything is said
VIEWS_S = 0.2  # seconds between candidates
VIEW_UNCHANGED_SHARE = 0.25  # of the blocks that may be as always: a hand over the table leaves four of sixteen alone
VIEW_LIKE_SHARE = 0.1  # of the kept looks that must be like the frame: what fills less of the time is not usual
VIEW_APART_S = 120.0  # seconds, or half of all: newer looks are of the same spell of weather
VIEW_CALM_QUANTILE = 0.3  # of the kept looks, whose distances say what is usual: weather may fill most of an hour
LEAST_BLOCK_UNIT = 1e-4  # of a descriptor, of a still that is repeated: noise of 2.5 grey levels has three times that
VIEW_SAME = 8.0  # units: a hand over half of the picture reaches 7, a car that comes in 6,
VIEW_CHANGED = 14.0  # snow, fog, clouds, low bitrate 17 to 100; rain 5 to 12
JUDGED = 0.5  # of what is unlike its place: where more was left out, no event is followed, and it is said; of names too

# -- a fixed camera: how often something is at a place (traffic.py) ------------------------------------------

THERE = 1.5  # unlikeness from which something is at a place
VISIT_S = 1.0  # seconds that one visit counts at most: whoever stays is no more usual than who passes
RARE_SHARE = 0.01  # of the time: a place with less traffic counts fully
LEAST_WEIGHT = 0.2  # of the busiest place: even there, something can be new
WATCHED_PRIOR_S = 10.0  # seconds of watching that are taken for granted before anything is known,
TRAFFIC_PRIOR_S = 0.3  # seconds of traffic in them: a place has three in a hundred then,
EMPTY_PRIOR_S = 2.0  # and seconds without anything at all
BUSY_SHARE = 0.05  # of the time that nothing is there: up to here traffic alone decides what is usual,
EMPTY_SHARE = 0.25  # from here on every visit is news, wherever it goes
TRAFFIC_REACH = 5  # patches across: who walks here could have walked beside

# -- a fixed camera: what a frame's level usually is (level.py) ----------------------------------------------

LEAST_LEVEL = 6.0  # below, nothing is there: things of five by five patches come to more
LEAST_LEVEL_DEVIATION = 2.08  # no place is steadier: LEAST_LEVEL is just told where nothing ever is
EARLY_S = 5.0  # seconds after which the least is still twice as high
LASTING_S = (0.15, 1.0)  # seconds ago at least: compression repeats its noise until then; and at most: others came
LASTING_FRAMES = 16  # to look back over: so many are a sixth of a second of any camera
LOWER = (0.05, 0.30)  # quantiles of the lower half, where no event is: what is usual where nothing often is
UPPER = (0.50, 0.95)  # quantiles where nothing is ever empty: events are few there, and the lower half says too little
NARROW = 0.75  # what was seen holds the events too: the usual spreads less than all of it
IN_EVENT = 0.2  # weight of frames in events: they may be the scene's own, but are not believed at once
HIGHEST_LEVEL = 64.0  # the whole frame at MOST_UNLIKE
LEVEL_BINS = 256  # a quarter each

# -- a fixed camera: visits and their kinds (visits/) --------------------------------------------------------

STANDS_OUT = 1.2  # unlikeness from which a patch is part of a sighting: what noise reaches here and there is not
LEAST_SIGHTING = 4  # patches: fewer are no thing
MAX_SIGHTINGS = 16  # of a frame: more are weather
MAX_VISITS = 24  # under way at once
LEAST_DESCRIBED = 6  # patches: fewer show too little to say what they are
REACHED = 0.3  # share of the smaller box that two frames of one visit share, at its pace
PACE = 0.4  # of the newest step, in the pace of a visit
GONE_S = 1.0  # seconds: a visit that was not found for longer is over
APART_S = 2.0  # seconds that a visit may be lost in another one
LEAST_VISIT_FRAMES = 3  # fewer are a flicker
DESCRIBED_FRAMES = 3  # whole frames of a visit: its look has a mean and a spread
CONFIRMED_FRAMES = 6  # whole frames until someone strange is believed to be
WAIT_S = 4.0  # seconds that a visit may take to be seen whole, where the usual ones are known
SOMEBODY = 4.0  # units of looks: who differs so from their own visit's mean
OTHER_FRAMES = 5  # and for so many frames in a row, is somebody else
LOOK_MEMORY = 0.97  # of what visits taught about looks, kept at each: 33 visits count
LEAST_VARIANCE = 1e-6  # of a look, of a still that repeats itself exactly
LEAST_LOOK_UNIT = 0.005  # of a look: rounding of boxes and compression are no difference
ALIKE = 1.6  # units of looks: nearer ones are of one kind,
UNALIKE = 2.5  # farther ones are not
MAX_KINDS = 48  # kinds remembered: those not seen for longest give way
LEAST_KIND_VISITS = 2  # visits until a kind can be usual: by chance one comes at any rate
KIND_PRIOR_S = 5.0  # seconds of watching without a visit that are taken for granted: two in a moment are no rate
NEWEST_VISITS = 4  # visits that say how often a kind comes now: what began an hour late is known after so many
USUAL_RATE = 2.4  # times the alerts an hour that may be told: a kind that comes so often is counted, not told
LEAST_VISITS = 4  # visits until someone can be strange: before, everybody is
OUTSTANDING = 1.3  # times the distance that OUTSTANDING_SHARE of the last visits had when they came:
OUTSTANDING_SHARE = 0.8  # who is farther from every kind is strange
STRANGE_MEMORY = 20  # visits that this is judged by
RECENT_VISITS = 12  # visits that say who usually comes now
COARSE_ROWS, COARSE_COLUMNS = 12, 16  # cells of the picture: a kind is usual where it went, and beside

# -- a fixed camera: what visitors usually look like (visits/habituation.py) ---------------------------------

MARK_REACH = 7  # patches across that a mark is a mean over: less is alike in too many things, more is half a person
AXES = 6  # along which marks are compared: with 8 more of what is usual is told
AXES_S = 10.0  # seconds between two looks for them: they follow light and weather of minutes
MARKS_MEMORY = 20000.0  # marks that they are found from: some minutes of somebody in view
LEAST_PAIRS = 200.0  # marks compared with the same thing a second ago, before there are axes: nine for each value
MARK_RIDGE = 0.0025  # of how marks vary in all: no value is steadier than a twentieth of its spread
LIKE_ITSELF = 1.75  # deviations of a thing from itself a second ago: two in three are as near, in every world seen;
UNLIKE_ITSELF = 2.8  # from here on it is another: nine in ten are nearer
MARKED_SECONDS = 64  # seconds kept of all in which somebody was there
MARKS = 32  # of a second: with half as many a small thing has too few beside a large one
MOST_MARKS = 80  # of a frame: half a millisecond to compare
MARK_SMOOTHING = 5  # patches across: a visitor is usual, or not, by more than one patch
UNUSUAL_SHARE = 0.03  # of the time that something like it is in view: less often it is news,
USUAL_SHARE = 0.09  # so often it is none: a second and a half of every quarter of a minute
HABITUATION_BEGINS_S = 180.0  # seconds of watching: before, nobody is usual for coming often alone,
HABITUATED_S = 300.0  # after so many fully: the thirtieth of those who come every ten seconds
