"""The numbers that novelty rests on beside the settings: each with its unit and why it is what it is.

Read by the modules of agent/novelty. It must not hold what a user may set: that is the section [novelty].
"""

# -- the frame's score ---------------------------------------------------------------------------------------

NOVEL = 3.0  # deviations above the usual: from here a patch is part of a region, and doubted as a teacher
HIGHEST = 30.0  # deviations: one absurd patch must not be a frame's score
NEIGHBOURS = 3  # patches across: things cover neighbouring patches, noise does not
MAX_REGIONS = 8  # regions of a frame: more are no places to point at
SETTLING_FRAMES = 6  # scored frames until a baseline means anything
CALIBRATION_FRAMES = 16  # scored frames before a rarity is believed
# Deviations of patches: the smallest deviation of a frame's statistic, and what it is taken for at first. Under a fixed
# camera every new model moves the means of places a little for all later frames; components are measured anew instead.
LEAST_SPREAD_PLACES = 0.7
LEAST_SPREAD_COMPONENTS = 0.8

# -- baselines -----------------------------------------------------------------------------------------------

CLIP = 3.0  # deviations: how far one surprise may pull a baseline
DOUBTED_SHARE = 0.1  # of what other places learn: novelty that no event was raised for must not become usual
LEAST_SHARE = 0.05  # of the typical variance: the least that a component may have
POOLED_FRAMES = 10  # frames: a place watched this long is judged half by itself, half by the typical place
MEMORY_FRAMES = 100  # frames, about three models: what a place's surprise was under older ones means little
KEPT_ROWS = 2048  # rows of the whole past, 30 a component where there are many
KEPT_ROWS_PER_FRAME = 64  # rows: a frame's patches resemble each other, more of them say little
SHRINK_ROWS = 20  # rows: a component with this many kept ones is judged half by them, half by all
LEAST_DEVIATION = 1e-3  # nats: of rows that all surprise alike

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
BLOCK = 10  # pixels
LEAST_TEXTURE = 1.5  # grey levels of deviation: below it a block shows no motion
FIRST_LAG = 4  # frames: a slow vehicle needs some to leave its place
KEPT_SHARE = 0.5  # of its structure: a block that keeps less has moved
MOVED_SHARE = 0.5  # of the textured blocks: people and cars move fewer, a moving camera nearly all
