"""Every wait, retry and bound of the worker's session, with its name. Times in ms."""

CONNECT_WAIT_MS = 10_000  # no handshake in this time: next endpoint, new socket (which resolves the name again)
CONNECT_WAIT_OF_SEVERAL_MS = 4_000
ANSWER_WAIT_MS = 5_000  # ENROL or HELLO without an answer
ANSWER_TRIES_MAX = 3  # then the next endpoint
RETRY_BASE_MS = 500
RETRY_MAX_MS = 3_000  # a master that comes back is found at once
AUTH_RETRY_BASE_MS = 30_000
AUTH_RETRY_MAX_MS = 600_000
FAULT_RETRY_BASE_MS = 2_000
FAULT_RETRY_MAX_MS = 30_000
KEY_FAULTS_BEFORE_WORDS = 2  # one broken handshake may be a master that is just stopping
NO_ANSWER_BEFORE_WORDS_MS = 3_000

SILENCE_MS = 10_000  # CHUNK, CREDIT or ACK awaited this long: ask again
CREDIT_WAIT_MIN_MS = 5_000
PULL_SILENCES_MAX = 6  # then the task is handed back
PULL_ATTEMPTS_MAX = 3  # whole downloads with a wrong digest, then the task is handed back
PROGRESS_EVERY_MS = 1_000

HELD_MAX = 8  # as many as HELLO can name
READ_FAULTS_MAX = 6  # in a row while a delta is offered, one in SILENCE_MS; then it is given up
PARAMETER_COPIES = 7  # must fit into memory: anchor, local now and before, gradient; momentum now, before and after
PARAMETER_COPIES_ADAMW = 11  # its state is twice as long, and it has work space

STORAGE_RETRY_BASE_MS = 10_000  # the disk failed: the first look whether it works again, then later and later
STORAGE_RETRY_MAX_MS = 300_000

TRAINER_READY_MS = 120_000  # a trainer that starts must say that it is ready
TRAINER_WORD_EVERY_MS = 10_000  # so often people are told that it still starts
TRAINER_FREE_MS = 60_000  # a task waits this long for a trainer that starts or ends another task
STEP_WAIT_MIN_MS = 60_000  # no progress in this time, and in STEP_WAIT_FACTOR steps: the trainer hangs
STEP_WAIT_FACTOR = 10
FILE_BYTES_PER_MS = 1_000  # what the slowest disk reads and writes: a large model gets time for its files
TRAINER_RETRY_MS = (1_000, 4_000, 60_000)  # by deaths in a row; the last also for all further ones
TRAINER_DEATHS_BEFORE_PAUSE = len(TRAINER_RETRY_MS)

SENTENCE_EVERY_MS = 60_000  # the same sentence at most this often
SENTENCES_KEPT = 32
PARKED_SENTENCE_EVERY_MS = 600_000
SUSPENDED_HEARTBEATS = 2  # a tick later than this many heartbeats: the PC slept, deadlines start again
BYE_LINGER_MS = 500
REASON_LENGTH_MAX = 900
ENDPOINTS_MAX = 16
